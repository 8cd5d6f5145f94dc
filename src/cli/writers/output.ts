// Where results go: a file, which appears under its name only when it is whole, or stdout. Nothing
// that is there is overwritten unless that is asked for.

import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { CliError, EXIT_CODES, usageError } from '../failure.js';

export interface Output {
  readonly byteCount: number;
  write(bytes: Uint8Array): Promise<void>;
  /** Replaces bytes that were written before; not on stdout. */
  patch(at: number, bytes: Uint8Array): Promise<void>;
  /** Gives the file its name. */
  finish(): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
}

/** Stands for stdout among paths, as no path does. */
export const STDOUT = '-';

/** Throws CliError when the file exists or cannot be made. */
export async function openOutput(path: string | undefined, isForced: boolean): Promise<Output> {
  if (path === undefined || path === STDOUT) return new StdoutOutput();
  checkFree(path, isForced);
  const draft = `${path}.unfinished-${process.pid}`;
  keepDraft(draft, path);
  try {
    return new FileOutput(path, draft, await open(draft, 'w'));
  } catch (cause) {
    forgetDraft(draft);
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = isMissing ? 'there is no such folder' : (cause as Error).message;
    throw new CliError(`${path}: cannot be written: ${reason}`, { cause });
  }
}

/** Throws CliError when there is something that may not be overwritten. */
export function checkFree(path: string, isForced: boolean): void {
  if (isForced || !existsSync(path)) return;
  throw usageError(`${path} exists, and is left as it is; --force overwrites it`);
}

/** Files on their way to a name, by what they are called until then. */
const drafts = new Map<string, string>();
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function keepDraft(draft: string, path: string): void {
  if (drafts.size === 0) for (const signal of SIGNALS) process.on(signal, leaveNothing);
  drafts.set(draft, path);
}

function forgetDraft(draft: string): void {
  drafts.delete(draft);
  if (drafts.size === 0) for (const signal of SIGNALS) process.off(signal, leaveNothing);
}

/** At once, since whatever is being waited for may never come. */
function leaveNothing(): void {
  for (const draft of drafts.keys()) rmSync(draft, { force: true });
  const [path] = drafts.values();
  const newLine = process.stderr.isTTY ? '\n' : '';
  process.stderr.write(`${newLine}sagitta: interrupted; nothing was written to ${path}\n`);
  process.exit(EXIT_CODES.interrupted);
}

/** Writes all of it, or leaves nothing. */
export async function writeAll(output: Output, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) await output.write(chunk);
    await output.finish();
  } catch (error) {
    await output.discard();
    throw error;
  }
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

  async finish(): Promise<void> {
    await this.#handle.sync();
    await this.#handle.close();
    await rename(this.#draft, this.#path);
    forgetDraft(this.#draft);
  }

  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {});
    await rm(this.#draft, { force: true });
    forgetDraft(this.#draft);
  }

  async #put(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.#handle.write(bytes, done, left, at + done);
      done += bytesWritten;
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
    throw new Error('stdout has no bytes to go back to');
  }

  async finish(): Promise<void> {}

  async discard(): Promise<void> {}
}
