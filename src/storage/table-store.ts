// A store over ordered tables that are written in atomic batches, one at a time: groups commits,
// finds out before a batch what is wrong with one, and reads in pages. Trimmed records are gone for
// readers at once and are removed little by little. Leaves the disk to the tables and the blobs.

import { assert, SagittaError } from '../common/errors.js';
import { writeBackup } from './backup.js';
import type { BlobFiles } from './blob-files.js';
import { CommitPlan, type PlannedWrite } from './commit-plan.js';
import type { DirectoryLock } from './directory-lock.js';
import { LogBook } from './log-book.js';
import type { DiskStore, LogEntry, StoreKey, StoreOperation } from './store.js';
import {
  DROPPED,
  decodeKey,
  decodeTrim,
  encodeKey,
  type KeyRange,
  rangeUnder,
  recordRange,
  sequenceOf,
  type TableName,
} from './store-format.js';

export interface TableEntry {
  readonly key: Buffer;
  /** Owned by the caller. */
  readonly value: Uint8Array;
}

export interface Tables {
  /** All of it or nothing; on disk, and seen by every read, when it resolves. Not called again before. */
  write(writes: readonly PlannedWrite[]): Promise<void>;
  get(table: TableName, key: Buffer): Uint8Array | undefined;
  /** The first entries of the range, at least one where there are any: what fits into one turn. */
  readPage(table: TableName, range: KeyRange): TableEntry[];
  readKeys(table: TableName, range: KeyRange, countMax: number): Buffer[];
  readLastKey(table: TableName, range: KeyRange): Buffer | undefined;
  /** Writes the tables as they are at one moment to a new file, while writes go on. */
  copyTo(path: string): Promise<void>;
  close(): Promise<void>;
}

/** Bounds what one batch writes; a commit that is larger goes alone. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;
/** Trimmed records that one batch removes: more would hold up the commits behind it. */
const SWEEP_RECORDS_MAX = 500;
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER - 1;

interface WaitingCommit {
  readonly operations: readonly StoreOperation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class TableStore implements DiskStore {
  readonly #directory: string;
  readonly #tables: Tables;
  readonly #blobs: BlobFiles;
  readonly #lock: DirectoryLock;
  readonly #book = new LogBook();
  /** Logs that may hold trimmed records, and through which sequence. */
  readonly #unswept = new Map<string, number>();
  #waiting: WaitingCommit[] = [];
  #running: Promise<void> | undefined;
  #backup: Promise<unknown> | undefined;
  #isSweepPaused = false;
  #isClosing = false;

  /** From here on all three are the store's; it closes them. */
  constructor(options: {
    directory: string;
    tables: Tables;
    blobs: BlobFiles;
    lock: DirectoryLock;
  }) {
    this.#directory = options.directory;
    this.#tables = options.tables;
    this.#blobs = options.blobs;
    this.#lock = options.lock;
    for (const { key, value } of this.#entriesUnder('trims', rangeUnder([]))) {
      const log = decodeKey(key)[0]!;
      const through = decodeTrim(value);
      if (through === DROPPED) this.#book.apply({ kind: 'dropLog', log });
      else this.#open(log, through);
      this.#unswept.set(log, through);
    }
    if (this.#unswept.size > 0) this.#running = this.#run();
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosing, 'no commit after close');
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operations, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  get(key: StoreKey): Uint8Array | undefined {
    return this.#tables.get('values', encodeKey(key));
  }

  *list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    for (const { key, value } of this.#entriesUnder('values', rangeUnder(prefix))) {
      yield { key: decodeKey(key), value };
    }
  }

  *readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    this.#open(log);
    if (this.#book.isDropped(log)) return;
    const first = Math.max(afterSequence, this.#book.trimmedThrough(log)) + 1;
    for (const { key, value } of this.#entriesUnder(
      'records',
      recordRange(log, first, SEQUENCE_MAX),
    )) {
      const sequence = sequenceOf(key);
      this.#book.count(log, sequence, value.byteLength);
      yield { sequence, record: value };
    }
  }

  logBytes(log: string): number {
    return this.#book.byteLengthOf(log);
  }

  writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    assert(!this.#isClosing, 'no blob is written after close');
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

  async backup(
    folder: string,
    choose: Parameters<DiskStore['backup']>[1],
  ): ReturnType<DiskStore['backup']> {
    assert(!this.#isClosing, 'no backup after close');
    if (this.#backup !== undefined) {
      throw new SagittaError('overloaded', 'Another backup is being made; one at a time is.', {
        retryAfterSeconds: 10,
      });
    }
    const source = {
      directory: this.#directory,
      copyTables: (path: string) => this.#tables.copyTo(path),
      blobPath: (name: string) => this.#blobs.pathOf(name),
      isStopping: () => this.#isClosing,
    };
    const making = this.#blobs.holdWhile(() => writeBackup(source, folder, choose));
    this.#backup = making.catch(() => {});
    try {
      return await making;
    } finally {
      this.#backup = undefined;
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#backup;
    await this.#running;
    await this.#blobs.close();
    await this.#tables.close();
    await this.#lock.release();
  }

  /** Page by page: what is yielded is held by nothing, however long the caller takes with it. */
  *#entriesUnder(table: TableName, range: KeyRange): Iterable<TableEntry> {
    let rest = range;
    while (true) {
      const page = this.#tables.readPage(table, rest);
      if (page.length === 0) return;
      yield* page;
      // The smallest key after the last one read.
      rest = { start: Buffer.concat([page.at(-1)!.key, Buffer.of(0)]), end: range.end };
    }
  }

  /** Lets the book know what the disk knows of the log. */
  #open(log: string, trimmedThrough = 0): void {
    if (this.#book.has(log) || this.#book.isDropped(log)) return;
    const last = this.#tables.readLastKey('records', recordRange(log, 0, SEQUENCE_MAX));
    this.#book.enter(log, last === undefined ? 0 : sequenceOf(last), trimmedThrough);
  }

  async #run(): Promise<void> {
    // Commits of the same turn of the event loop share the first batch.
    await Promise.resolve();
    const allKeysIn = (range: KeyRange) => this.#tables.readKeys('values', range, Infinity);
    while (this.#waiting.length > 0 || this.#maySweep()) {
      const plan = new CommitPlan(this.#book, allKeysIn);
      const group = this.#takeGroup(plan);
      try {
        const writes = [...plan.writes, ...this.#planSweep()];
        if (writes.length > 0) await this.#tables.write(writes);
      } catch (error) {
        // A sweep needs room too. It waits until commits go well without one.
        this.#isSweepPaused = true;
        for (const { reject } of group) reject(error);
        continue;
      }
      if (group.length > 0) this.#isSweepPaused = false;
      for (const change of plan.changes) {
        this.#book.apply(change);
        if (change.kind === 'trim') this.#unswept.set(change.log, change.throughSequence);
        if (change.kind === 'dropLog') this.#unswept.set(change.log, DROPPED);
      }
      for (const { resolve } of group) resolve();
    }
    // In the same turn as the last look at the queue: a commit that comes later starts a new run.
    this.#running = undefined;
  }

  /** Plans commits from the front of the queue until the batch is large enough. */
  #takeGroup(plan: CommitPlan): WaitingCommit[] {
    const group: WaitingCommit[] = [];
    let byteCount = 0;
    while (this.#waiting.length > 0 && byteCount < GROUP_BYTES_MAX) {
      const bytes = byteLengthOf(this.#waiting[0]!.operations);
      if (group.length > 0 && byteCount + bytes > GROUP_BYTES_MAX) break;
      const commit = this.#waiting.shift()!;
      try {
        for (const operation of commit.operations) {
          if ('log' in operation) this.#open(operation.log);
        }
        plan.add(commit.operations);
      } catch (error) {
        commit.reject(error);
        continue;
      }
      group.push(commit);
      byteCount += bytes;
    }
    return group;
  }

  #maySweep(): boolean {
    return this.#unswept.size > 0 && !this.#isSweepPaused && !this.#isClosing;
  }

  /** Removals of some trimmed records; after the last one of a dropped log, of its mark. */
  #planSweep(): PlannedWrite[] {
    if (!this.#maySweep()) return [];
    for (const [log, through] of this.#unswept) {
      const range = recordRange(log, 0, Math.min(through, SEQUENCE_MAX));
      const keys = this.#tables.readKeys('records', range, SWEEP_RECORDS_MAX);
      if (keys.length > 0) return keys.map((key) => ({ table: 'records', key, value: undefined }));
      this.#unswept.delete(log);
      if (through === DROPPED) return [{ table: 'trims', key: encodeKey([log]), value: undefined }];
    }
    return [];
  }
}

function byteLengthOf(operations: readonly StoreOperation[]): number {
  let byteCount = 0;
  for (const operation of operations) {
    if (operation.kind === 'append') byteCount += operation.record.byteLength;
    else if (operation.kind === 'put') byteCount += operation.value.byteLength;
  }
  return byteCount;
}
