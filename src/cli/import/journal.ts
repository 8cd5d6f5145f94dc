// The import journal: a small file in the XDG state directory that records the progress of an import, so that the same
// command resumes after an interruption. It holds the identity of files and collection, the number of durable rows, and
// the seed of generated ids.

import { createHash, randomInt } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** How far an import of files has come. */
export interface ImportProgress {
  /** Index of the current file. */
  readonly file: number;
  /** Durable rows of that file. */
  readonly row: number;
  /** Durable rows of all files. */
  readonly total: number;
}

interface ImportState {
  /** Digest of the files, the options and the incarnation of the collection. If it differs, the import starts over. */
  readonly identity: string;
  readonly seed: string;
  readonly progress: ImportProgress;
}

export const START: ImportProgress = { file: 0, row: 0, total: 0 };

/** Bytes at the beginning of each file that go into its fingerprint. */
const HEAD_BYTES = 65_536;

export class ImportJournal {
  readonly seed: string;
  /** Where an earlier run of the same import stopped; START if there was none. */
  readonly progress: ImportProgress;
  readonly #path: string | undefined;
  readonly #identity: string;

  /** Use `open` or `none`. */
  private constructor(path: string | undefined, identity: string, found: ImportState | undefined) {
    this.#path = path;
    this.#identity = identity;
    this.seed = found?.seed ?? makeSeed(Date.now());
    this.progress = found?.progress ?? START;
  }

  /** Whether progress is recorded, so that the same command can resume. */
  get isKept(): boolean {
    return this.#path !== undefined;
  }

  /** A journal that records nothing. */
  static none(): ImportJournal {
    return new ImportJournal(undefined, '', undefined);
  }

  /**
   * `target` and `files` identify the journal file. The recorded progress is ignored with `isRestart`, or if the
   * files, `options` or `incarnation` have changed since.
   */
  static async open(about: {
    readonly directory: string;
    readonly target: string;
    readonly files: readonly string[];
    readonly options: string;
    readonly incarnation: string;
    readonly isRestart: boolean;
  }): Promise<ImportJournal> {
    const files = about.files.map((file) => resolve(file));
    const path = join(about.directory, `${digest([about.target, ...files])}.json`);
    const fingerprints = await Promise.all(files.map(fingerprint));
    const identity = digest([about.options, about.incarnation, ...fingerprints]);
    const found = about.isRestart ? undefined : await readState(path);
    return new ImportJournal(path, identity, found?.identity === identity ? found : undefined);
  }

  /** Records that rows have become durable. Errors are ignored: they only prevent a later resume. */
  async save(progress: ImportProgress): Promise<void> {
    if (this.#path === undefined) return;
    const state: ImportState = { identity: this.#identity, seed: this.seed, progress };
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      // A fixed name, so that killed processes leave at most one file behind.
      const draft = `${this.#path}.unfinished`;
      await writeFile(draft, JSON.stringify(state));
      await rename(draft, this.#path);
    } catch {}
  }

  /** Removes the journal of a complete import, so that importing the same files again starts over. */
  async remove(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true }).catch(() => {});
  }
}

export function stateDirectory(): string {
  const { XDG_STATE_HOME: home } = process.env;
  const base = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  return join(base, 'sagitta', 'imports');
}

async function readState(path: string): Promise<ImportState | undefined> {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as ImportState;
    const { file, row, total } = state.progress;
    const isWhole = [file, row, total].every(Number.isSafeInteger) && state.seed.length > 0;
    return isWhole ? state : undefined;
  } catch {
    return undefined;
  }
}

/** The path, size and modification time of a file, and a digest of its first bytes. */
async function fingerprint(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const handle = await open(path);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const head = createHash('sha256').update(buffer.subarray(0, bytesRead)).digest('hex');
    return `${path} ${size} ${mtimeMs} ${head}`;
  } finally {
    await handle.close();
  }
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32);
}

/** The alphabet of ULIDs (Crockford's base 32). */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_LETTERS = 10;
const RANDOM_LETTERS = 7;
const ROW_LETTERS = 9;

function makeSeed(nowMs: number): string {
  let random = '';
  for (let at = 0; at < RANDOM_LETTERS; at++) random += LETTERS[randomInt(LETTERS.length)];
  return lettersOf(nowMs, TIME_LETTERS) + random;
}

/** A ULID from the import's time, random letters and the row number; it is the same in every run of an import. */
export function rowId(seed: string, row: number): string {
  return seed + lettersOf(row, ROW_LETTERS);
}

function lettersOf(value: number, count: number): string {
  let text = '';
  let rest = value;
  for (let at = 0; at < count; at++) {
    text = LETTERS[rest % LETTERS.length] + text;
    rest = Math.floor(rest / LETTERS.length);
  }
  return text;
}
