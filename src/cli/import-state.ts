// How far an import came, in a small file of its own, so that the same command goes on after an
// interruption: which files, which collection, how many rows are durable, and the seed of the ids
// that rows without one get. Lies where the XDG rules put what programs remember.

import { createHash, randomInt } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

export interface ImportPosition {
  /** Index of the file that is read. */
  readonly file: number;
  /** Rows of that file that are durable. */
  readonly row: number;
  /** Rows of all files that are durable. */
  readonly total: number;
}

interface ImportState {
  /** Files, options and the incarnation of the collection: any other, and rows are counted anew. */
  readonly identity: string;
  readonly seed: string;
  readonly position: ImportPosition;
}

export const START: ImportPosition = { file: 0, row: 0, total: 0 };

const HEAD_BYTES = 65_536;

export class ImportJournal {
  readonly seed: string;
  /** Where an earlier run of the same import stopped. */
  readonly position: ImportPosition;
  readonly #path: string | undefined;
  readonly #identity: string;

  private constructor(path: string | undefined, identity: string, found: ImportState | undefined) {
    this.#path = path;
    this.#identity = identity;
    this.seed = found?.seed ?? makeSeed(Date.now());
    this.position = found?.position ?? START;
  }

  /** Whether the same command goes on where this one stops. */
  get isKept(): boolean {
    return this.#path !== undefined;
  }

  /** Remembers nothing. */
  static none(): ImportJournal {
    return new ImportJournal(undefined, '', undefined);
  }

  /** `target` and `files` name the import; `options` and `incarnation` may change, and then it is another. */
  static async open(about: {
    readonly folder: string;
    readonly target: string;
    readonly files: readonly string[];
    readonly options: string;
    readonly incarnation: string;
    readonly isRestart: boolean;
  }): Promise<ImportJournal> {
    const files = about.files.map((file) => resolve(file));
    const path = join(about.folder, `${digest([about.target, ...files])}.json`);
    const facts = await Promise.all(files.map(factsOf));
    const identity = digest([about.options, about.incarnation, ...facts]);
    const found = about.isRestart ? undefined : await readState(path);
    return new ImportJournal(path, identity, found?.identity === identity ? found : undefined);
  }

  /** Called when rows have become durable. A folder that cannot be written costs the resumption only. */
  async save(position: ImportPosition): Promise<void> {
    if (this.#path === undefined) return;
    const state: ImportState = { identity: this.#identity, seed: this.seed, position };
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      // One name, so that a process that is killed here leaves nothing that piles up.
      const draft = `${this.#path}.unfinished`;
      await writeFile(draft, JSON.stringify(state));
      await rename(draft, this.#path);
    } catch {}
  }

  /** At the end of an import: the next one of the same files starts anew. */
  async remove(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true }).catch(() => {});
  }
}

export function stateFolder(): string {
  const { XDG_STATE_HOME: home } = process.env;
  const base = home === undefined || home === '' ? join(homedir(), '.local', 'state') : home;
  return join(base, 'sagitta', 'imports');
}

async function readState(path: string): Promise<ImportState | undefined> {
  try {
    const state = JSON.parse(await readFile(path, 'utf8')) as ImportState;
    const { file, row, total } = state.position;
    const isWhole = [file, row, total].every(Number.isSafeInteger) && state.seed.length > 0;
    return isWhole ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Size, time of change and the first bytes: what tells one version of a file from another. */
async function factsOf(path: string): Promise<string> {
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

/** The letters of ULIDs. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_LETTERS = 10;
const RANDOM_LETTERS = 7;
const ROW_LETTERS = 9;

function makeSeed(nowMs: number): string {
  let random = '';
  for (let at = 0; at < RANDOM_LETTERS; at++) random += LETTERS[randomInt(LETTERS.length)];
  return lettersOf(nowMs, TIME_LETTERS) + random;
}

/** A ULID: the time of the import, chance, and the row, so that a row has the same one on any run. */
export function idOfRow(seed: string, row: number): string {
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
