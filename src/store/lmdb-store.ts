// The embedded store: logs and keyed values in lmdb, blobs as files beside it. lmdb's environment
// is opened without overlapping sync, so that the promise of a batch resolves when it is on disk
// (strace: the pages, fdatasync, the meta page through a descriptor with O_DSYNC, then the promise).
// Commits that wait for the one being written go together as the next batch.

import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { assert, SagittaError } from '../errors.js';
import { BlobFiles } from './blob-files.js';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { translateDiskError } from './disk-errors.js';
import { LogLengths } from './log-lengths.js';
import type { LogEntry, Store, StoreKey, StoreOperation } from './store.js';

/** The layout of logs, values and blobs in the directory. */
const FORMAT_VERSION = 1;
const FORMAT_KEY: StoreKey = ['store', 'format'];
/** Sorts after every string and every array element in lmdb's key order. */
const AFTER_ALL = Buffer.of(0xff);
/** The mark of a log that is gone as a whole. */
const DROPPED = Number.MAX_SAFE_INTEGER;
/** Trimmed records are removed so many at a time, so that a long log does not hold up commits. */
const SWEEP_COUNT = 2_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Bounds what one lmdb transaction writes. */
const BATCH_BYTES_MAX = 64 * 1024 * 1024;

interface WaitingCommit {
  readonly operations: readonly StoreOperation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Throws `data_directory_locked` when another process has the directory, `configuration_invalid` when a newer version wrote it. */
export async function openLmdbStore(options: { directory: string }): Promise<Store> {
  const { directory } = options;
  const lock = await lockDirectory(directory);
  try {
    const blobs = await BlobFiles.open(join(directory, 'segments'));
    const root: RootDatabase<Buffer, string> = open({
      path: join(directory, 'store.lmdb'),
      // With overlapping sync a commit would resolve before it is on disk.
      overlappingSync: false,
      // Commits are grouped here, where their order and their failures are known.
      eventTurnBatching: false,
      maxDbs: 4,
      encoding: 'binary',
    });
    const store = new LmdbStore({ directory, lock, blobs, root });
    await store.checkFormat();
    return store;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

class LmdbStore implements Store {
  readonly #directory: string;
  readonly #lock: DirectoryLock;
  readonly #blobs: BlobFiles;
  readonly #root: RootDatabase<Buffer, string>;
  readonly #values: Database<Buffer, string[]>;
  readonly #records: Database<Buffer, RecordKey>;
  /** By log: the sequence through which it is trimmed, whatever still lies there. */
  readonly #trims: Database<string, string>;
  readonly #trimmedThrough = new Map<string, number>();
  readonly #unsweptLogs = new Set<string>();
  readonly #lengths = new LogLengths();
  /** lmdb's writing thread does not keep the process alive; this does, while a batch is under way. */
  readonly #keepAlive = setInterval(() => {}, LONGEST_TIMER_MS).unref();
  #waiting: WaitingCommit[] = [];
  #writing: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #batchesUnderWay = 0;
  #isClosing = false;

  constructor(options: {
    directory: string;
    lock: DirectoryLock;
    blobs: BlobFiles;
    root: RootDatabase<Buffer, string>;
  }) {
    this.#directory = options.directory;
    this.#lock = options.lock;
    this.#blobs = options.blobs;
    this.#root = options.root;
    this.#values = options.root.openDB({ name: 'values', encoding: 'binary' });
    this.#records = options.root.openDB({ name: 'records', encoding: 'binary' });
    this.#trims = options.root.openDB({ name: 'trims', encoding: 'string' });
    for (const { key, value } of this.#trims.getRange()) {
      this.#markTrimmed(key, Number(value));
    }
  }

  async checkFormat(): Promise<void> {
    const found = this.get(FORMAT_KEY);
    if (found === undefined) {
      await this.commit([
        { kind: 'put', key: FORMAT_KEY, value: Buffer.from(String(FORMAT_VERSION)) },
      ]);
      return;
    }
    const version = Number(Buffer.from(found).toString());
    if (version === FORMAT_VERSION) return;
    await this.close();
    throw new SagittaError(
      'configuration_invalid',
      `The data directory ${this.#directory} has format version ${version}; this Sagitta reads version ${FORMAT_VERSION}. Start the version that wrote it, or name another directory.`,
    );
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosing, 'no commit after close');
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operations, resolve, reject });
      this.#writing ??= this.#writeWaiting();
    });
  }

  get(key: StoreKey): Uint8Array | undefined {
    const value = this.#values.get([...key]);
    return value === undefined ? undefined : new Uint8Array(value);
  }

  *list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    for (const { key, value } of this.#values.getRange(rangeUnder(prefix))) {
      yield { key, value: new Uint8Array(value) };
    }
  }

  *readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    const from = Math.max(afterSequence, this.#trimmedThrough.get(log) ?? 0) + 1;
    for (const { key, value } of this.#records.getRange(logRange(log, from, AFTER_ALL))) {
      const sequence = key[1];
      this.#lengths.add(log, sequence, value.byteLength);
      yield { sequence, record: new Uint8Array(value) };
    }
  }

  logBytes(log: string): number {
    return this.#lengths.bytesOf(log);
  }

  writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    return this.#blobs.write(name, parts);
  }

  readBlob(name: string): Promise<Uint8Array | undefined> {
    return this.#blobs.read(name);
  }

  removeBlob(name: string): Promise<void> {
    return this.#blobs.remove(name);
  }

  listBlobs(prefix = ''): Promise<string[]> {
    return this.#blobs.list(prefix);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#writing;
    await this.#sweeping;
    clearInterval(this.#keepAlive);
    await this.#root.close();
    await this.#lock.release();
  }

  async #writeWaiting(): Promise<void> {
    // Commits of the same turn of the event loop share the first batch too.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = takeGroup(this.#waiting);
      try {
        await this.#batch(() => {
          for (const { operations } of group) {
            for (const operation of operations) this.#put(operation);
          }
        });
      } catch (error) {
        const reason = await translateDiskError(error, this.#directory);
        for (const { reject } of group) reject(reason);
        continue;
      }
      for (const { operations, resolve } of group) {
        for (const operation of operations) this.#note(operation);
        resolve();
      }
    }
    // In the same turn as the last look at the queue: a commit that comes later starts a new run.
    this.#writing = undefined;
  }

  /** One lmdb transaction; resolves when it is on disk. */
  async #batch(change: () => void): Promise<void> {
    this.#keepAlive.ref();
    this.#batchesUnderWay++;
    try {
      await this.#root.batch(change);
    } catch (error) {
      // lmdb rejects with a stand-in that carries a promise of the cause.
      const cause = (error as { commitError?: Promise<never> }).commitError;
      await cause;
      throw error;
    } finally {
      if (--this.#batchesUnderWay === 0) this.#keepAlive.unref();
    }
  }

  /** Inside a batch: nothing here takes effect unless all of it does. */
  #put(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append':
        ignore(this.#records.put([operation.log, operation.sequence], toBuffer(operation.record)));
        break;
      case 'trim':
        ignore(this.#trims.put(operation.log, String(operation.throughSequence)));
        break;
      case 'dropLog':
        ignore(this.#trims.put(operation.log, String(DROPPED)));
        break;
      case 'put':
        ignore(this.#values.put([...operation.key], toBuffer(operation.value)));
        break;
      case 'remove':
        ignore(this.#values.remove([...operation.key]));
        break;
      case 'removeUnder':
        for (const key of this.#values.getKeys(rangeUnder(operation.prefix))) {
          ignore(this.#values.remove(key));
        }
        break;
    }
  }

  /** After a batch: what memory knows about the logs. */
  #note(operation: StoreOperation): void {
    switch (operation.kind) {
      case 'append':
        this.#lengths.add(operation.log, operation.sequence, operation.record.byteLength);
        break;
      case 'trim':
        this.#lengths.trim(operation.log, operation.throughSequence);
        this.#markTrimmed(operation.log, operation.throughSequence);
        break;
      case 'dropLog':
        this.#lengths.drop(operation.log);
        this.#markTrimmed(operation.log, DROPPED);
        break;
      default:
        break;
    }
  }

  /** Frees the pages of trimmed records, in the background and in small transactions. */
  #markTrimmed(log: string, throughSequence: number): void {
    this.#trimmedThrough.set(log, throughSequence);
    this.#unsweptLogs.add(log);
    this.#sweeping ??= this.#sweepLogs()
      // A full disk, say: the marks stay, and the next trim or start goes on.
      .catch(() => {})
      .finally(() => {
        this.#sweeping = undefined;
      });
  }

  async #sweepLogs(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    for (const log of this.#unsweptLogs) {
      this.#unsweptLogs.delete(log);
      await this.#sweepLog(log);
    }
  }

  async #sweepLog(log: string): Promise<void> {
    while (!this.#isClosing) {
      const through = this.#trimmedThrough.get(log)!;
      const range = logRange(log, 0, through === DROPPED ? AFTER_ALL : through + 1);
      const gone = [...this.#records.getKeys({ ...range, limit: SWEEP_COUNT })];
      if (gone.length > 0) {
        await this.#batch(() => {
          for (const key of gone) ignore(this.#records.remove(key));
        });
        continue;
      }
      if (through === DROPPED) {
        await this.#batch(() => ignore(this.#trims.remove(log)));
        this.#trimmedThrough.delete(log);
      }
      return;
    }
  }
}

/** Takes commits from the front until the batch is large enough. */
function takeGroup(waiting: WaitingCommit[]): WaitingCommit[] {
  let byteCount = 0;
  let count = 0;
  while (count < waiting.length && byteCount < BATCH_BYTES_MAX) {
    for (const operation of waiting[count]!.operations) {
      if (operation.kind === 'append') byteCount += operation.record.byteLength;
    }
    count++;
  }
  return waiting.splice(0, count);
}

type RecordKey = [log: string, sequence: number];

/** Records of the log from one sequence to before another; lmdb's types do not know mixed keys. */
function logRange(
  log: string,
  start: number,
  end: number | Buffer,
): { start: RecordKey; end: RecordKey } {
  return { start: [log, start], end: [log, end] as RecordKey };
}

function rangeUnder(prefix: StoreKey): { start: string[]; end: string[] } {
  return { start: [...prefix], end: [...prefix, AFTER_ALL] as unknown as string[] };
}

/** The batch's promise tells; lmdb's further promises of the same failure must not go unhandled. */
function ignore(promise: PromiseLike<boolean>): void {
  promise.then(undefined, () => {});
}

/** lmdb must not be handed shared memory: on Node 20 it reads past it. */
function toBuffer(bytes: Uint8Array): Buffer {
  return bytes.buffer instanceof SharedArrayBuffer
    ? Buffer.from(new Uint8Array(bytes))
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
