// Output to stdout or to a file, which appears under its name only when it is complete. Existing files are not
// overwritten unless that is requested.

import { once } from 'node:events';
import { renameSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { CliError, EXIT_CODES, usageError } from '../terminal/failure.js';

export interface Output {
  readonly byteCount: number;
  write(bytes: Uint8Array): Promise<void>;
  /** Overwrites bytes written earlier; not available on stdout. */
  patch(at: number, bytes: Uint8Array): Promise<void>;
  /** Waits until all bytes are durable; nothing can be written afterwards. */
  seal(): Promise<void>;
  /** Gives the sealed file its final name. */
  publish(): void;
  /** Removes the file unless it is published. */
  discard(): Promise<void>;
}

/** The path that stands for stdout. */
const STDOUT = '-';

export function isStdout(path: string | undefined): path is typeof STDOUT | undefined {
  return path === undefined || path === STDOUT;
}

/** Throws CliError when the file exists (unless `isForced`) or cannot be created. */
export async function openOutput(path: string | undefined, isForced: boolean): Promise<Output> {
  if (isStdout(path)) return new StdoutOutput();
  checkFree(path, isForced);
  const draft = `${path}.unfinished-${process.pid}`;
  registerDraft(draft, path);
  try {
    return new FileOutput(path, draft, await open(draft, 'w'));
  } catch (cause) {
    unregisterDraft(draft);
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = isMissing ? 'no such directory' : (cause as Error).message;
    throw new CliError(`cannot write ${path}: ${reason}`, { cause });
  }
}

/** Throws CliError when the file exists, unless `isForced`. */
export function checkFree(path: string, isForced: boolean): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.isDirectory()) throw usageError(`${path} is a directory, expected a file`);
  // A device or a pipe would be replaced by the file.
  if (!found.isFile()) {
    throw usageError(`${path} is not a regular file; write to stdout and redirect that`);
  }
  if (!isForced) throw usageError(`${path} already exists; use --force to overwrite it`);
}

/** Incomplete files: maps each temporary path to its final path. */
const drafts = new Map<string, string>();
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function registerDraft(draft: string, path: string): void {
  if (drafts.size === 0) for (const signal of SIGNALS) process.on(signal, discardDrafts);
  drafts.set(draft, path);
}

function unregisterDraft(draft: string): void {
  drafts.delete(draft);
  if (drafts.size === 0) for (const signal of SIGNALS) process.off(signal, discardDrafts);
}

/** Signal handler: removes incomplete files and exits at once. */
function discardDrafts(): void {
  for (const draft of drafts.keys()) rmSync(draft, { force: true });
  const [path] = drafts.values();
  const newLine = process.stderr.isTTY ? '\n' : '';
  process.stderr.write(`${newLine}sagitta: interrupted; nothing was written to ${path}\n`);
  process.exit(EXIT_CODES.interrupted);
}

/** Writes all chunks and publishes the output, or discards it on an error. */
export async function writeAll(output: Output, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) await output.write(chunk);
    await publishAll([output]);
  } catch (error) {
    await output.discard();
    throw error;
  }
}

/** Publishes all outputs at once when they are complete, so that a signal cannot interrupt in between. */
export async function publishAll(outputs: readonly Output[]): Promise<void> {
  for (const output of outputs) await output.seal();
  for (const output of outputs) output.publish();
}

class FileOutput implements Output {
  readonly #path: string;
  readonly #draft: string;
  readonly #handle: FileHandle;
  #byteCount = 0;

  constructor(path: string, draft: string, handle: FileHandle) {
    this.#path = path;
    this.#draft = draft;
    this.#handle = handle;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#put(bytes, this.#byteCount);
    this.#byteCount += bytes.length;
  }

  async patch(at: number, bytes: Uint8Array): Promise<void> {
    await this.#put(bytes, at);
  }

  async seal(): Promise<void> {
    await this.#withPath(async () => {
      await this.#handle.sync();
      await this.#handle.close();
    });
  }

  publish(): void {
    renameSync(this.#draft, this.#path);
    unregisterDraft(this.#draft);
  }

  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {});
    await rm(this.#draft, { force: true });
    unregisterDraft(this.#draft);
  }

  async #put(bytes: Uint8Array, at: number): Promise<void> {
    await this.#withPath(async () => {
      for (let done = 0; done < bytes.length; ) {
        const left = bytes.length - done;
        const { bytesWritten } = await this.#handle.write(bytes, done, left, at + done);
        done += bytesWritten;
      }
    });
  }

  /** Throws CliError with the path for an error of the file system. */
  async #withPath(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new CliError(`cannot write ${this.#path}: ${reason}; nothing was written`, { cause });
    }
  }
}

class StdoutOutput implements Output {
  byteCount = 0;

  async write(bytes: Uint8Array): Promise<void> {
    this.byteCount += bytes.length;
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
  }

  patch(): Promise<void> {
    throw new Error('stdout cannot be patched');
  }

  async seal(): Promise<void> {}

  publish(): void {}

  async discard(): Promise<void> {
    if (this.byteCount === 0) return;
    const newLine = process.stderr.isTTY ? '\n' : '';
    process.stderr.write(`${newLine}sagitta: the output on stdout is incomplete\n`);
  }
}
