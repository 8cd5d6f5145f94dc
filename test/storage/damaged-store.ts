// A small store to be damaged, with a journal of several files, and its readable contents.

import assert from 'node:assert/strict';
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SagittaError } from '../../src/common/errors.js';
import { damagedFile, JournalFiles } from '../../src/storage/journal-files.js';
import { readJournal } from '../../src/storage/journal-reader.js';
import { openStore } from '../../src/storage/open-store.js';
import { StateView } from '../../src/storage/state-view.js';
import type { StateReader, Store } from '../../src/storage/store.js';
import { StoreInspection } from '../../src/storage/store-inspection.js';
import { MARK_FILE, type Mark, readMark } from '../../src/storage/store-mark.js';
import { makeDirectory, openIn } from './directories.js';
import { framesIn } from './journal-frames.js';

export const text = (value: string) => new Uint8Array(Buffer.from(value));

/** The journal files that `makeDirectoryToDamage` leaves. The base refers to the log before it. */
export const OLD_LOG = 'journal/00000002.log';
export const BASE = 'journal/00000003.base';
export const FIRST_LOG = 'journal/00000004.log';
export const LAST_LOG = 'journal/00000006.log';
export const FILES = [OLD_LOG, BASE, FIRST_LOG, 'journal/00000005.log', LAST_LOG];
const LOG_BYTES_MAX = 400;
/** Number of the last commit, which is also the sequence of its record. */
const LAST_COMMIT = 11;

export async function makeDirectoryToDamage(): Promise<string> {
  const directory = await makeDirectory();
  const first = await openIn(directory);
  await first.commit([
    ...[1, 2, 3].map((i) => ({
      ...{ kind: 'put' as const, key: ['short', String(i)] },
      value: text(`${i}`.repeat(200)),
    })),
    { kind: 'append', log: 'l', sequence: 1, record: text(`record 1 ${'.'.repeat(400)}`) },
  ]);
  await first.close();
  // With a limit of one byte, a base is due when the store is opened.
  const second = await openIn(directory, 1);
  const hasBase = async () => (await namesIn(directory)).includes(BASE);
  while (!(await hasBase())) await new Promise((resolve) => setImmediate(resolve));
  await second.close();
  const store = await openIn(directory, LOG_BYTES_MAX);
  for (let i = 2; i <= LAST_COMMIT; i++) await commit(store, i);
  await store.close();
  assert.deepEqual(await namesIn(directory), FILES);
  // Cuts off the zeros after the last frame.
  await change(directory, LAST_LOG, (bytes) => bytes.subarray(0, framesIn(bytes).at(-1)!.end));
  return directory;
}

async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(join(directory, 'journal'))).map((name) => `journal/${name}`).sort();
}

/** Commits a record, a short value, and sometimes a long one. */
export async function commit(store: Store, i: number): Promise<void> {
  await store.commit([
    { kind: 'append', log: 'l', sequence: i, record: text(`record ${i}`) },
    { kind: 'put', key: ['k', String(i % 5)], value: text(`value ${i}`) },
    ...(i % 5 === 1 ? [longValue(i)] : []),
  ]);
}

const longValue = (i: number) =>
  ({
    kind: 'put',
    key: ['long', String(i)],
    value: text(`value ${i} ${'.'.repeat(250)}`),
  }) as const;

let toDamage: Promise<string> | undefined;

/** A copy of the same directory for each test. */
export async function copyToDamage(): Promise<string> {
  toDamage ??= makeDirectoryToDamage();
  return copyOf(await toDamage);
}

export async function change(
  directory: string,
  file: string,
  by: (bytes: Buffer) => Buffer | undefined,
): Promise<void> {
  const path = join(directory, file);
  const bytes = await readFile(path);
  await writeFile(path, by(bytes) ?? bytes);
}

/** Copies without the lock, as after a kill. */
export async function copyOf(directory: string): Promise<string> {
  const copy = join(await makeDirectory(), 'copy');
  const isCopied = (path: string) => !path.startsWith(join(directory, 'lock'));
  await cp(directory, copy, { recursive: true, filter: isCopied });
  return copy;
}

/** All values and records of the store as text. */
export function contentOf(store: Pick<StateReader, 'list' | 'readLog'>): string {
  const show = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1');
  const values = [...store.list([])].map(({ key, value }) => `${key.join('/')}: ${show(value)}`);
  const records = [...store.readLog('l', 0)].map(({ record }) => show(record));
  return [...values, ...records].join('\n');
}

export async function readContent(
  directory: string,
): Promise<{ content: string; warnings: readonly string[] }> {
  const warnings: string[] = [];
  const store = await openStore({ directory, warn: (message) => warnings.push(message) });
  try {
    return { content: contentOf(store), warnings };
  } finally {
    await store.close();
  }
}

export async function findingsIn(directory: string): Promise<string[]> {
  const findings: string[] = [];
  const inspection = await StoreInspection.open(directory, ({ severity, where, what }) =>
    findings.push(`${severity}: ${where}: ${what}`),
  );
  await inspection.close();
  return findings;
}

/** Reads without opening the store, which would write to it. */
export async function readDirectly(directory: string): Promise<string> {
  const [content] = await readWithEach(directory, LAST_LOG, [undefined]);
  return content!;
}

/**
 * Reads the store with each of these contents of a file, without opening it; undefined if it is refused as damaged. The
 * other files stay open, so that thousands of contents can be tried.
 */
export async function readWithEach(
  directory: string,
  file: string,
  contents: Iterable<Buffer | undefined>,
): Promise<(string | undefined)[]> {
  const files = await JournalFiles.open(directory);
  const descriptor = openSync(join(directory, file), 'r+');
  const intact = readFileSync(descriptor);
  const put = (bytes: Buffer) => {
    ftruncateSync(descriptor, bytes.byteLength);
    writeSync(descriptor, bytes, 0, bytes.byteLength, 0);
  };
  const found: (string | undefined)[] = [];
  let mark = await readMark(directory);
  try {
    for (const bytes of contents) {
      if (bytes !== undefined) put(bytes);
      if (file === MARK_FILE) mark = await readMark(directory);
      found.push(await readOpen(files, mark));
    }
  } finally {
    put(intact);
    closeSync(descriptor);
    files.close();
  }
  return found;
}

async function readOpen(files: JournalFiles, mark: Mark | undefined): Promise<string | undefined> {
  try {
    const journal = await readJournal(files, mark, (file, what) => {
      throw damagedFile(files.pathOf(file), what);
    });
    return contentOf(new StateView(journal!.state, files));
  } catch (error) {
    assert.equal((error as SagittaError).code, 'data_corrupt', (error as Error).stack);
    return undefined;
  }
}

export function* cutToEachLength(bytes: Buffer): Iterable<Buffer> {
  for (let length = 0; length <= bytes.length; length++) yield bytes.subarray(0, length);
}
