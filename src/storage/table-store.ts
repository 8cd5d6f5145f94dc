// A store over ordered tables that are written in atomic batches, one at a time. Groups commits, validates
// them before a batch is written, and reads in pages. Trimmed records become invisible at once and are
// removed in the background.

import { assert, SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import { anotherBackup, writeBackup } from './backup.js';
import type { BlobFiles } from './blob-files.js';
import { CommitPlan, type PlannedWrite } from './commit-plan.js';
import type { DirectoryLock } from './directory-lock.js';
import { isDiskLow } from './disk.js';
import { LogRegistry } from './log-registry.js';
import type { NewDirectory } from './new-directory.js';
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
  /** Writes all or nothing. On disk, and seen by every read, when it resolves. One call at a time. */
  write(writes: readonly PlannedWrite[]): Promise<void>;
  get(table: TableName, key: Buffer): Uint8Array | undefined;
  /** The first entries of the range, as many as can be read without blocking the event loop; at least one if there are any. */
  readPage(table: TableName, range: KeyRange): TableEntry[];
  readKeys(table: TableName, range: KeyRange, countMax: number): Buffer[];
  readLastKey(table: TableName, range: KeyRange): Buffer | undefined;
  /**
   * Gives the space of what was removed back to the file system, as far as that is possible now. Not during
   * a write. Never throws.
   */
  releaseFreePages(): Promise<void>;
  /** Writes the tables as of one moment to a new file, while writes continue. */
  copyTo(path: string): Promise<void>;
  close(): Promise<void>;
}

/** Bound on one batch; a larger commit is written alone. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;
/** Trimmed records removed per batch: more would delay the commits after it. */
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
  readonly #newDirectory: NewDirectory | null;
  readonly #logs = new LogRegistry();
  /** Logs that may still have trimmed records on disk, and through which sequence. */
  readonly #unswept = new Map<string, number>();
  #waiting: WaitingCommit[] = [];
  #running: Promise<void> | undefined;
  #backup: Promise<unknown> | undefined;
  #isSweepPaused = false;
  /** Since space was last released, the records of a trimmed log were removed, or those of a dropped one. */
  #sweptLogs: 'none' | 'trimmed' | 'dropped' = 'none';
  /** Commits wait for the sweep: they do not fit on the disk before it. */
  #mustSweepFirst = false;
  /** This many commits are written one by one: together they did not fit on the disk. */
  #aloneCount = 0;
  #isClosing = false;

  /** The store owns tables, blobs and lock, and closes them. */
  constructor(options: {
    directory: string;
    tables: Tables;
    blobs: BlobFiles;
    lock: DirectoryLock;
    /** Null unless the store is new. */
    newDirectory: NewDirectory | null;
  }) {
    this.#directory = options.directory;
    this.#tables = options.tables;
    this.#blobs = options.blobs;
    this.#lock = options.lock;
    this.#newDirectory = options.newDirectory;
    for (const { key, value } of this.#entriesUnder('trims', rangeUnder([]))) {
      const log = decodeKey(key)[0]!;
      const through = decodeTrim(value);
      if (through === DROPPED) this.#logs.apply({ kind: 'dropLog', log });
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
    if (this.#logs.isDropped(log)) return;
    const first = Math.max(afterSequence, this.#logs.trimmedThrough(log)) + 1;
    for (const { key, value } of this.#entriesUnder(
      'records',
      recordRange(log, first, SEQUENCE_MAX),
    )) {
      const sequence = sequenceOf(key);
      this.#logs.count(log, sequence, value.byteLength);
      yield { sequence, record: value };
    }
  }

  logBytes(log: string): number {
    return this.#logs.byteLengthOf(log);
  }

  writeBlob(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    assert(!this.#isClosing, 'no blob is written after close');
    return this.#blobs.write(name, parts);
  }

  readBlob(name: string): Promise<Uint8Array | undefined> {
    return this.#blobs.read(name);
  }

  mapBlob(name: string): Promise<FileMapping | null> {
    return this.#blobs.map(name);
  }

  copyBlob(from: string, to: string): Promise<void> {
    assert(!this.#isClosing, 'no blob is copied after close');
    return this.#blobs.copy(from, to);
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
    if (this.#backup !== undefined) throw anotherBackup();
    const source = {
      directory: this.#directory,
      copyTables: (path: string) => this.#tables.copyTo(path),
      blobPath: (name: string) => this.#blobs.pathOf(name),
      isStopping: () => this.#isClosing,
    };
    const making = this.#blobs.retainWhile(() => writeBackup(source, folder, choose));
    this.#backup = making.catch(() => {});
    try {
      return await making;
    } finally {
      this.#backup = undefined;
    }
  }

  async close(): Promise<void> {
    await this.#closeFiles();
    await this.#lock.release();
  }

  async closeAndRemoveIfNew(): Promise<void> {
    await this.#closeFiles();
    // Under the lock: nobody else can have written to the files.
    await this.#newDirectory?.removeFiles();
    await this.#lock.release();
    await this.#newDirectory?.removeFolders();
  }

  async #closeFiles(): Promise<void> {
    this.#isClosing = true;
    await this.#backup;
    await this.#running;
    await this.#blobs.close();
    await this.#tables.close();
  }

  /** Reads page by page, so that no read transaction is open while the caller handles an entry. */
  *#entriesUnder(table: TableName, range: KeyRange): Iterable<TableEntry> {
    let rest = range;
    while (true) {
      const page = this.#tables.readPage(table, rest);
      if (page.length === 0) return;
      yield* page;
      // Continue with the smallest key after the last one read.
      rest = { start: Buffer.concat([page.at(-1)!.key, Buffer.of(0)]), end: range.end };
    }
  }

  /** Registers the log with its state on disk. */
  #open(log: string, trimmedThrough = 0): void {
    if (this.#logs.has(log) || this.#logs.isDropped(log)) return;
    const last = this.#tables.readLastKey('records', recordRange(log, 0, SEQUENCE_MAX));
    this.#logs.enter(log, last === undefined ? 0 : sequenceOf(last), trimmedThrough);
  }

  async #run(): Promise<void> {
    // Commits made in the same iteration of the event loop share the first batch.
    await Promise.resolve();
    const allKeysIn = (range: KeyRange) => this.#tables.readKeys('values', range, Infinity);
    while (this.#waiting.length > 0 || this.#maySweep()) {
      const plan = new CommitPlan(this.#logs, allKeysIn);
      const group = this.#isSweepingFirst() ? [] : this.#takeGroup(plan);
      const sweep = this.#planSweep();
      try {
        const writes = [...plan.writes, ...sweep];
        if (writes.length > 0) await this.#tables.write(writes);
      } catch (error) {
        if (!this.#mayRetry(group, sweep, error)) for (const { reject } of group) reject(error);
        continue;
      }
      if (group.length > 0) this.#isSweepPaused = false;
      for (const change of plan.changes) {
        this.#logs.apply(change);
        if (change.kind === 'trim') this.#unswept.set(change.log, change.throughSequence);
        if (change.kind === 'dropLog') this.#unswept.set(change.log, DROPPED);
      }
      for (const { resolve } of group) resolve();
      await this.#releaseSpace();
    }
    // In the same turn as the last check of the queue, so a later commit starts a new run.
    this.#running = undefined;
  }

  /** Plans commits from the front of the queue until the batch is full. */
  #takeGroup(plan: CommitPlan): WaitingCommit[] {
    const group: WaitingCommit[] = [];
    let byteCount = 0;
    const countMax = this.#aloneCount > 0 ? 1 : Infinity;
    while (this.#waiting.length > 0 && byteCount < GROUP_BYTES_MAX && group.length < countMax) {
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
    if (this.#aloneCount > 0) this.#aloneCount--;
    return group;
  }

  #isSweepingFirst(): boolean {
    this.#mustSweepFirst &&= this.#maySweep();
    return this.#mustSweepFirst;
  }

  /**
   * Puts the commits of a failed batch back if they may fit on the disk in another way: after the sweep, whose
   * space they then have, or one by one, so that the deletion of a collection does not fail with large writes.
   */
  #mayRetry(
    group: readonly WaitingCommit[],
    sweep: readonly PlannedWrite[],
    error: unknown,
  ): boolean {
    const isFull = error instanceof SagittaError && error.code === 'storage_full';
    const isSweepNext = isFull && group.length > 0 && sweep.length > 0;
    const isAloneNext = isFull && group.length > 1 && !isSweepNext;
    this.#mustSweepFirst = isSweepNext;
    // A sweep needs space, too. It is paused until a batch without one succeeds.
    this.#isSweepPaused = !isSweepNext;
    if (isAloneNext) this.#aloneCount = group.length;
    const mayRetry = isSweepNext || isAloneNext;
    if (mayRetry) this.#waiting.unshift(...group);
    return mayRetry;
  }

  /**
   * After the last sweep. Pages that a trimmed log had are written again by the next records, which is faster
   * where they have not been released; on a disk with little room the segment files may need them.
   */
  async #releaseSpace(): Promise<void> {
    if (this.#sweptLogs === 'none' || this.#unswept.size > 0) return;
    if (this.#sweptLogs === 'trimmed' && !isDiskLow(this.#directory)) return;
    this.#sweptLogs = 'none';
    await this.#tables.releaseFreePages();
  }

  #maySweep(): boolean {
    return this.#unswept.size > 0 && !this.#isSweepPaused && !this.#isClosing;
  }

  /** Removes some trimmed records and, after the last one of a dropped log, its mark. */
  #planSweep(): PlannedWrite[] {
    if (!this.#maySweep()) return [];
    for (const [log, through] of this.#unswept) {
      const range = recordRange(log, 0, Math.min(through, SEQUENCE_MAX));
      const keys = this.#tables.readKeys('records', range, SWEEP_RECORDS_MAX);
      if (keys.length > 0) return keys.map((key) => ({ table: 'records', key, value: undefined }));
      this.#unswept.delete(log);
      if (through === DROPPED) this.#sweptLogs = 'dropped';
      else if (this.#sweptLogs === 'none') this.#sweptLogs = 'trimmed';
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
