// A store over ordered tables that are written in atomic batches, one at a time. Groups commits, validates
// them before a batch is written, and reads in pages. Trimmed records become invisible at once and are
// removed in the background.

import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { assert, SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import { anotherBackup, type BackupSource, writeBackup } from './backup.js';
import type { BlobFiles, RetainedFiles } from './blob-files.js';
import { CommitPlan, type PlannedWrite } from './commit-plan.js';
import type { DirectoryLock } from './directory-lock.js';
import { isDiskLow } from './disk.js';
import { ChainReader, decodeStoredLog, splitRecord } from './log-chain.js';
import { LogRegistry } from './log-registry.js';
import type { NewDirectory } from './new-directory.js';
import { damagedEntry, openValue, storedChecksum } from './sealed-entry.js';
import type { DiskStore, LogEntry, StoreKey, StoreOperation, StoreSnapshot } from './store.js';
import {
  DROPPED,
  decodeKey,
  encodeKey,
  type KeyRange,
  logOf,
  rangeUnder,
  recordRange,
  STORE_FILE,
  sequenceOf,
  type TableName,
} from './store-format.js';
import { decodeHead, HEAD_KEY, headAfter, type StoreHead, writeOfHead } from './store-head.js';
import type { MarkFile } from './store-mark.js';

export interface TableEntry {
  readonly key: Buffer;
  /** As it is stored. Owned by the caller. */
  readonly value: Uint8Array;
}

/** An entry whose checksum was compared. */
interface OpenedEntry extends TableEntry {
  readonly checksum: number;
}

export interface TableReader extends Pick<Tables, 'readPage'> {
  close(): void;
}

/** Values are stored as they are given; only this file seals and opens them. */
export interface Tables {
  /**
   * Writes all or nothing. On disk, and seen by every read, when it resolves. One call at a time. `makesRoom`:
   * whether the writes lead to free space, so that they may take what is reserved for such ones.
   */
  write(writes: readonly PlannedWrite[], makesRoom: boolean): Promise<void>;
  /** Of the disk; set by a write whose outcome is not known. Nothing can be read or written then. */
  readonly failure: SagittaError | undefined;
  get(table: TableName, key: Buffer): Uint8Array | undefined;
  /** The first entries of the range, as many as can be read without blocking the event loop; at least one if there are any. */
  readPage(table: TableName, range: KeyRange): TableEntry[];
  readKeys(table: TableName, range: KeyRange, countMax: number): Buffer[];
  /** Reads the state of now until it is closed. */
  openReader(): TableReader;
  /** The next parts give the space of all that was removed until now back to the file system. */
  startRelease(): void;
  /**
   * Gives a part of the space back, without blocking the event loop for long. Returns whether there may be
   * more. Not during a write; does nothing during a copy, or while a reader is open. Never throws.
   */
  releasePart(): Promise<boolean>;
  /** Writes the tables as of one moment to a new file, while writes continue. */
  copyTo(path: string): Promise<void>;
  close(): Promise<void>;
}

/** Bound on one batch; a larger commit is written alone. */
const GROUP_BYTES_MAX = 64 * 1024 * 1024;
/** Trimmed records removed per batch: more would delay the commits after it. */
const SWEEP_RECORDS_MAX = 500;
const SEQUENCE_MAX = Number.MAX_SAFE_INTEGER - 1;

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface WaitingCommit extends Waiting {
  readonly operations: readonly StoreOperation[];
}

/** Removals of trimmed and dropped records. */
interface Sweep {
  readonly writes: readonly PlannedWrite[];
  /** The log of which nothing is left afterwards; null for none. */
  readonly erased: string | null;
}

export class TableStore implements DiskStore {
  readonly #directory: string;
  readonly #path: string;
  readonly #tables: Tables;
  readonly #blobs: BlobFiles;
  readonly #lock: DirectoryLock;
  readonly #mark: MarkFile;
  readonly #newDirectory: NewDirectory | null;
  readonly #logs = new LogRegistry();
  /** Logs that may still have trimmed records on disk, and through which sequence. */
  readonly #unswept = new Map<string, number>();
  #head: StoreHead;
  #waiting: WaitingCommit[] = [];
  #running: Promise<void> | undefined;
  #backup: Promise<unknown> | undefined;
  #isSweepPaused = false;
  /** Since space was last released, the records of a trimmed log were removed, or those of a dropped one. */
  #sweptLogs: 'none' | 'trimmed' | 'dropped' = 'none';
  /** Space is being released, part by part. */
  #isReleasing = false;
  /** Copies and snapshots under way, during which nothing is released. */
  #readerCount = 0;
  readonly #snapshots = new Set<Promise<unknown>>();
  /** Logs of which nothing is to be left, with those who wait for that. */
  readonly #erasing = new Map<string, Waiting>();
  /** Commits wait for the sweep: they do not fit on the disk before it. */
  #mustSweepFirst = false;
  /** This many commits are written one by one: together they did not fit on the disk. */
  #aloneCount = 0;
  #isClosing = false;
  readonly #onFailure: (error: SagittaError) => void;
  #hasFailed = false;

  /**
   * The store owns tables, blobs, lock and mark, and closes them. Throws `data_corrupt`, and leaves them open
   * then.
   */
  constructor(options: {
    directory: string;
    tables: Tables;
    blobs: BlobFiles;
    lock: DirectoryLock;
    mark: MarkFile;
    /** Null unless the store is new. */
    newDirectory: NewDirectory | null;
    /** Told, once, of the failure of the tables. */
    onFailure: (error: SagittaError) => void;
  }) {
    this.#directory = options.directory;
    this.#path = join(options.directory, STORE_FILE);
    this.#tables = options.tables;
    this.#blobs = options.blobs;
    this.#lock = options.lock;
    this.#mark = options.mark;
    this.#newDirectory = options.newDirectory;
    this.#onFailure = options.onFailure;
    this.#head = this.#readHead();
    for (const { key, value } of this.#entriesUnder(this.#tables, 'logs', rangeUnder([]))) {
      const log = decodeKey(key)[0]!;
      const stored = decodeStoredLog(value);
      if (stored === undefined) throw damagedEntry(this.#path, placeOf('logs', key));
      this.#logs.enter(log, stored);
      if (stored.trimmedThrough > 0) this.#unswept.set(log, stored.trimmedThrough);
    }
    if (this.#unswept.size > 0) this.#running = this.#run();
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    assert(!this.#isClosing, 'no commit after close');
    if (this.#tables.failure !== undefined) return Promise.reject(this.#tables.failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operations, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  get(key: StoreKey): Uint8Array | undefined {
    const encoded = encodeKey(key);
    const value = this.#tables.get('values', encoded);
    return value && this.#open('values', { key: encoded, value }).value;
  }

  list(prefix: StoreKey): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    return this.#list(this.#tables, prefix);
  }

  *#list(
    reader: Pick<Tables, 'readPage'>,
    prefix: StoreKey,
  ): Iterable<{ readonly key: StoreKey; readonly value: Uint8Array }> {
    for (const { key, value } of this.#entriesUnder(reader, 'values', rangeUnder(prefix))) {
      yield { key: decodeKey(key), value };
    }
  }

  *readLog(log: string, afterSequence: number): Iterable<LogEntry> {
    if (this.#logs.isDropped(log)) return;
    const after = Math.max(afterSequence, this.#logs.trimmedThrough(log));
    const chain = new ChainReader(
      { last: this.#logs.lastOf(log), trimmedThrough: this.#logs.trimmedThrough(log) },
      after,
    );
    // Of records that are trimmed while the caller reads, some may be removed already.
    const isTrimmed = () => this.#logs.trimmedThrough(log) > after;
    for (const entry of this.#records(this.#tables, log, { after, chain, isTrimmed })) {
      this.#logs.count(log, entry.sequence, entry.record.byteLength);
      yield entry;
    }
  }

  /** Throws `data_corrupt` for a chain that is broken, unless the log has been trimmed meanwhile. */
  *#records(
    reader: Pick<Tables, 'readPage'>,
    log: string,
    {
      after,
      chain,
      isTrimmed,
    }: { readonly after: number; readonly chain: ChainReader; readonly isTrimmed: () => boolean },
  ): Iterable<LogEntry> {
    const requireIntact = (problem: string | undefined) => {
      if (problem !== undefined && !isTrimmed()) throw brokenChain(this.#path, log, problem);
    };
    const range = recordRange(log, after + 1, SEQUENCE_MAX);
    for (const entry of this.#entriesUnder(reader, 'records', range)) {
      const sequence = sequenceOf(entry.key);
      const split = splitRecord(entry.value);
      if (split === undefined) throw damagedEntry(this.#path, placeOf('records', entry.key));
      requireIntact(chain.accept(sequence, split.previous, entry.checksum));
      yield { sequence, record: split.record };
    }
    requireIntact(chain.end());
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
    return this.#backUp((source) => writeBackup(source, folder, choose));
  }

  async eraseLog(log: string): Promise<void> {
    // Without a record it can be used.
    if (!this.#logs.isDropped(log) && this.#logs.lastOf(log).sequence === 0) return;
    await this.commit([{ kind: 'dropLog', log }]);
    await new Promise<void>((resolve, reject) => {
      this.#erasing.set(log, { resolve, reject });
      this.#isSweepPaused = false;
      this.#running ??= this.#run();
    });
  }

  async withSnapshot<Result>(use: (snapshot: StoreSnapshot) => Promise<Result>): Promise<Result> {
    assert(!this.#isClosing, 'no snapshot after close');
    const using = this.#blobs.retainWhile((files) => this.#useSnapshot(files, use));
    const ended = using.catch(() => {});
    this.#snapshots.add(ended);
    try {
      return await using;
    } finally {
      this.#snapshots.delete(ended);
    }
  }

  async #useSnapshot<Result>(
    files: RetainedFiles,
    use: (snapshot: StoreSnapshot) => Promise<Result>,
  ): Promise<Result> {
    const reader = this.#tables.openReader();
    this.#readerCount++;
    let isOpen = true;
    const endEntries = () => {
      if (!isOpen) return;
      isOpen = false;
      reader.close();
      this.#endReading();
    };
    try {
      return await use({
        get: (key) => this.#get(reader, key),
        list: (prefix) => this.#list(reader, prefix),
        readLog: (log, after) => this.#readSnapshotLog(reader, log, after),
        readBlob: (name) => files.read(name),
        endEntries,
      });
    } finally {
      endEntries();
    }
  }

  #endReading(): void {
    this.#readerCount--;
    if (this.#mayRelease()) this.#running ??= this.#run();
  }

  #get(reader: Pick<Tables, 'readPage'>, key: StoreKey): Uint8Array | undefined {
    const start = encodeKey(key);
    const [found] = reader.readPage('values', { start, end: keyAfter(start) });
    return found && this.#open('values', found).value;
  }

  *#readSnapshotLog(
    reader: Pick<Tables, 'readPage'>,
    log: string,
    afterSequence: number,
  ): Iterable<LogEntry> {
    const key = encodeKey([log]);
    const [found] = reader.readPage('logs', { start: key, end: keyAfter(key) });
    if (found === undefined) return;
    const stored = decodeStoredLog(this.#open('logs', found).value);
    if (stored === undefined) throw damagedEntry(this.#path, placeOf('logs', key));
    if (stored.trimmedThrough === DROPPED) return;
    const after = Math.max(afterSequence, stored.trimmedThrough);
    const chain = new ChainReader(stored, after);
    yield* this.#records(reader, log, { after, chain, isTrimmed: () => false });
  }

  async #backUp<Result>(make: (source: BackupSource) => Promise<Result>): Promise<Result> {
    assert(!this.#isClosing, 'no backup after close');
    if (this.#backup !== undefined) throw anotherBackup();
    const making = this.#blobs.retainWhile((files) =>
      make({
        directory: this.#directory,
        copyTables: (path) => this.#copyTables(path),
        blobPath: files.pathOf,
        isStopping: () => this.#isClosing,
      }),
    );
    this.#backup = making.catch(() => {});
    try {
      return await making;
    } finally {
      this.#backup = undefined;
    }
  }

  async #copyTables(path: string): Promise<void> {
    this.#readerCount++;
    try {
      await this.#tables.copyTo(path);
    } finally {
      this.#endReading();
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
    await Promise.all(this.#snapshots);
    await this.#running;
    this.#endErasing(closed());
    await this.#blobs.close();
    await this.#tables.close();
    await this.#mark.close();
  }

  #readHead(): StoreHead {
    const value = this.#tables.get('meta', HEAD_KEY);
    const head = value && decodeHead(this.#open('meta', { key: HEAD_KEY, value }).value);
    if (head === undefined) throw damagedEntry(this.#path, 'the head of its tables');
    return head;
  }

  /** Throws `data_corrupt` when the entry does not have its checksum. */
  #open(table: TableName, { key, value }: TableEntry): OpenedEntry {
    const opened = openValue(table, key, value);
    if (opened === undefined) throw damagedEntry(this.#path, placeOf(table, key));
    return { key, ...opened };
  }

  /** Reads page by page, so that no read transaction is open while the caller handles an entry. */
  *#entriesUnder(
    reader: Pick<Tables, 'readPage'>,
    table: TableName,
    range: KeyRange,
  ): Iterable<OpenedEntry> {
    let rest = range;
    while (true) {
      const page = reader.readPage(table, rest);
      if (page.length === 0) return;
      for (const entry of page) yield this.#open(table, entry);
      rest = { start: keyAfter(page.at(-1)!.key), end: range.end };
    }
  }

  async #run(): Promise<void> {
    // Commits made in the same iteration of the event loop share the first batch.
    await Promise.resolve();
    const allKeysIn = (range: KeyRange) => this.#tables.readKeys('values', range, Infinity);
    while (this.#waiting.length > 0 || this.#maySweep() || this.#mayRelease()) {
      const plan = new CommitPlan(this.#logs, allKeysIn);
      const group = this.#isSweepingFirst() ? [] : this.#takeGroup(plan);
      const sweep = this.#planSweep();
      try {
        await this.#write([...plan.writes, ...sweep.writes], makesRoom(group, plan));
      } catch (error) {
        if (sweep.erased !== null) this.#unswept.set(sweep.erased, DROPPED);
        if (!this.#mayRetry(group, sweep.writes, error)) {
          for (const { reject } of group) reject(error);
          this.#endErasing(error);
        }
        this.#noticeFailure();
        continue;
      }
      if (sweep.erased !== null) this.#noteErased(sweep.erased);
      if (group.length > 0) this.#isSweepPaused = false;
      for (const change of plan.changes) {
        this.#logs.apply(change);
        if (change.kind === 'trim') this.#unswept.set(change.log, change.throughSequence);
        if (change.kind === 'dropLog') this.#unswept.set(change.log, DROPPED);
      }
      for (const { resolve } of group) resolve();
      await this.#releasePart();
      this.#noticeFailure();
    }
    // In the same turn as the last check of the queue, so a later commit starts a new run.
    this.#running = undefined;
  }

  /** Writes the batch with the head after it, then the mark. */
  async #write(writes: readonly PlannedWrite[], hasReserve: boolean): Promise<void> {
    if (writes.length === 0) return;
    const head = headAfter(this.#head, writes, (table, key) => {
      const stored = this.#tables.get(table, key);
      return stored && storedChecksum(stored);
    });
    await this.#tables.write([...writes, writeOfHead(head)], hasReserve);
    this.#head = head;
    await this.#mark.write(head);
  }

  /** Nobody who has not asked for it uses the name again. */
  #noteErased(log: string): void {
    const waiting = this.#erasing.get(log);
    if (waiting === undefined) return;
    this.#erasing.delete(log);
    this.#logs.forget(log);
    waiting.resolve();
  }

  #endErasing(error: unknown): void {
    for (const { reject } of this.#erasing.values()) reject(error);
    this.#erasing.clear();
  }

  /** After a failure of the disk, nothing more is written: it would be built on a state that may not be there. */
  #noticeFailure(): void {
    const { failure } = this.#tables;
    if (failure === undefined) return;
    for (const { reject } of this.#waiting.splice(0)) reject(failure);
    this.#isSweepPaused = true;
    this.#isReleasing = false;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#onFailure(failure);
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

  #mayRelease(): boolean {
    return this.#isReleasing && this.#readerCount === 0;
  }

  /**
   * Releases space after the last sweep, a part after each batch, so that commits do not wait for all of it.
   * Pages that a trimmed log had are written again by the next records, which is faster where they have not
   * been released; on a disk with little room the segment files may need them.
   */
  async #releasePart(): Promise<void> {
    const isSwept = this.#sweptLogs !== 'none' && this.#unswept.size === 0;
    if (isSwept && (this.#sweptLogs === 'dropped' || isDiskLow(this.#directory))) {
      this.#sweptLogs = 'none';
      this.#isReleasing = true;
      this.#tables.startRelease();
    }
    if (!this.#mayRelease()) return;
    // Requests, and those whose commits are done, have their turn before each part.
    await nextTurn();
    if (this.#mayRelease()) this.#isReleasing = await this.#tables.releasePart();
  }

  #maySweep(): boolean {
    return this.#unswept.size > 0 && !this.#isSweepPaused && !this.#isClosing;
  }

  /** Removes some trimmed records and, after the last one of a dropped log, its mark. */
  #planSweep(): Sweep {
    if (!this.#maySweep()) return NO_SWEEP;
    for (const [log, through] of this.#unswept) {
      const range = recordRange(log, 0, Math.min(through, SEQUENCE_MAX));
      const keys = this.#tables.readKeys('records', range, SWEEP_RECORDS_MAX);
      if (keys.length > 0) {
        const writes = keys.map((key) => ({ table: 'records', key, value: undefined }) as const);
        return { writes, erased: null };
      }
      this.#unswept.delete(log);
      if (through === DROPPED) this.#sweptLogs = 'dropped';
      else if (this.#sweptLogs === 'none') this.#sweptLogs = 'trimmed';
      if (through === DROPPED) {
        const write = { table: 'logs', key: encodeKey([log]), value: undefined } as const;
        return { writes: [write], erased: log };
      }
    }
    return NO_SWEEP;
  }
}

/** Whether a batch is a sweep alone, or deletes a collection. Of several commits each is tried alone later. */
function makesRoom(group: readonly WaitingCommit[], { changes }: CommitPlan): boolean {
  return (
    group.length === 0 ||
    (group.length === 1 && changes.length > 0 && changes.every(({ kind }) => kind === 'dropLog'))
  );
}

const NO_SWEEP: Sweep = { writes: [], erased: null };

/** The smallest key after another one. */
function keyAfter(key: Buffer): Buffer {
  return Buffer.concat([key, Buffer.of(0)]);
}

function closed(): SagittaError {
  return new SagittaError('stopping', 'The store was closed before the log was removed.');
}

function placeOf(table: TableName, key: Buffer): string {
  if (table !== 'records')
    return `the entry ${JSON.stringify(decodeKey(key).join('/'))} of table ${table}`;
  return `record ${sequenceOf(key)} of log ${logOf(key)}`;
}

function brokenChain(path: string, log: string, problem: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: in log ${log}, ${problem}. Run "sagitta verify" to find other damage, and restore a backup.`,
  );
}

function byteLengthOf(operations: readonly StoreOperation[]): number {
  let byteCount = 0;
  for (const operation of operations) {
    if (operation.kind === 'append') byteCount += operation.record.byteLength;
    else if (operation.kind === 'put') byteCount += operation.value.byteLength;
  }
  return byteCount;
}
