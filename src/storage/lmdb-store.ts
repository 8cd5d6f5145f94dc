// The embedded store: tables in one lmdb file, blobs as files beside it, one process at a time. A write
// resolves when it is on disk, and one that fails leaves nothing. TableStore groups the commits.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Transaction } from 'lmdb';
import { SagittaError } from '../common/errors.js';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { requireNoBackup } from './backup-marker.js';
import { BlobFiles } from './blob-files.js';
import type { PlannedWrite } from './commit-plan.js';
import { LOCK_FOLDER, lockDirectory } from './directory-lock.js';
import {
  FILE_MODE,
  hasFreeSpace,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFolder,
  translateDiskError,
} from './disk.js';
import type { MappingRule } from './file-mapper.js';
import { FreePageRelease } from './free-pages.js';
import { commitTo, damagedFile, type Environment, openEnvironment } from './lmdb-environment.js';
import { prepareLmdbFiles } from './lmdb-file.js';
import { LmdbPages } from './lmdb-pages.js';
import { NewDirectory } from './new-directory.js';
import { SpaceReserve } from './space-reserve.js';
import type { DiskStore } from './store.js';
import { type CheckedTables, checkTables } from './store-check.js';
import {
  BLOB_FOLDER,
  FORMAT_KEY,
  FORMAT_VERSION,
  type KeyRange,
  otherFormat,
  STORE_FILE,
  type TableName,
} from './store-format.js';
import { firstHead, type StoreHead, writeOfHead } from './store-head.js';
import { compareMark, MARK_FILE, type Mark, MarkFile, readMark } from './store-mark.js';
import { type TableEntry, type TableReader, TableStore, type Tables } from './table-store.js';
import { requireUsable, suspicionsAbout, unusable } from './usable-directory.js';

/** Entries per read. Between two reads no snapshot is open, which would keep old pages from reuse. */
const PAGE_ENTRIES_MAX = 256;
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Space reserved per write, for its own page and its share of the tree above. */
const WRITE_OVERHEAD_BYTES = 8 * 1024;
/** Of a record that is removed: its neighbours, which are removed with it, share their pages. */
const SWEEP_OVERHEAD_BYTES = 1024;
/** Reserved per batch, for the roots of the tables and the list of free pages. */
const BATCH_OVERHEAD_BYTES = 256 * 1024;

/**
 * Throws `data_directory_locked` when another process has the directory, `configuration_invalid`
 * when it cannot be used, is a backup, or has another format, `data_corrupt` when the file is
 * damaged or older than its mark, and `storage_full`. What was made in a new directory is then removed.
 */
export async function openLmdbStore(options: {
  directory: string;
  /** Whether blobs can be mapped; `auto` by default. */
  mapping?: MappingRule;
  /** Told what was repaired. */
  warn?: (message: string) => void;
  /**
   * Told, once, that the disk has failed. Every later commit is refused: the store is to be closed and opened
   * again, which finds out what is on the disk.
   */
  onFailure?: (error: SagittaError) => void;
}): Promise<DiskStore> {
  const { directory, mapping = 'auto', warn = () => {}, onFailure = () => {} } = options;
  await requireUsable(directory);
  await requireNoBackup(directory).catch((error: unknown) => {
    throw unusable(directory, error);
  });
  const newDirectory = new NewDirectory(directory);
  const lock = await lockDirectory(directory).catch(async (error: unknown) => {
    await newDirectory.removeFolders();
    throw error;
  });
  const isNew = !existsSync(join(directory, STORE_FILE));
  if (isNew) newDirectory.noteFiles();
  const madeHere = [LOCK_FOLDER, CONTROL_FOLDER];
  for (const message of await suspicionsAbout(directory, { isNew, madeHere })) warn(message);
  let tables: LmdbTables | undefined;
  let markFile: MarkFile | undefined;
  try {
    const blobs = await BlobFiles.open(join(directory, BLOB_FOLDER), { mapping, isNew });
    const mark = await readMark(directory);
    const mayBeNew = blobs.wasEmpty && (mark?.number ?? 0) === 0;
    const head = await prepareTables(directory, { mayBeNew, mark, warn });
    tables = await LmdbTables.open(directory);
    markFile = await MarkFile.open(directory, warn);
    if (mark === undefined || !mark.digest.equals(head.digest)) await markFile.reset(head);
    return new TableStore({
      directory,
      tables,
      blobs,
      lock,
      mark: markFile,
      newDirectory: isNew ? newDirectory : null,
      onFailure,
    });
  } catch (error) {
    // Before the directory is removed, whose disk is looked at.
    const translated = unusable(directory, translateDiskError(error, directory));
    await markFile?.close();
    await tables?.close();
    await newDirectory.removeFiles();
    await lock.release();
    await newDirectory.removeFolders();
    throw translated;
  }
}

/** Checks the file of tables, without lmdb, and the mark, or makes the file. Returns the head of the tables. */
async function prepareTables(
  directory: string,
  options: {
    mayBeNew: boolean;
    mark: Mark | undefined;
    warn: (message: string) => void;
  },
): Promise<StoreHead> {
  const { mayBeNew, mark, warn } = options;
  const path = join(directory, STORE_FILE);
  if (!(await prepareLmdbFiles(path, { mayBeNew }))) return makeTables(path);
  const { formatVersion, head, isEmpty } = checkFile(path);
  // A first start that died before its first transaction.
  if (formatVersion === undefined && isEmpty && mayBeNew) return makeTables(path);
  if (formatVersion === undefined) throw damaged(path, 'the format version is missing');
  if (Number(formatVersion) !== FORMAT_VERSION) throw otherFormat(directory, formatVersion);
  const { kind, what } = compareMark(mark, head!);
  if (kind === 'lost') throw lostCommits(path, what);
  if (kind === 'missing')
    warn(`The file ${join(directory, MARK_FILE)} ${what}. It was written anew.`);
  if (kind === 'behind' && head!.number - mark!.number > 1) {
    warn(`The file ${join(directory, MARK_FILE)} ${what}. It was written anew.`);
  }
  return head!;
}

async function makeTables(path: string): Promise<StoreHead> {
  const head = firstHead(randomBytes(16));
  const environment = await openEnvironment(path);
  const { root, tables } = environment;
  try {
    const { key, value } = writeOfHead(head);
    await commitTo(environment, () => {
      tables.meta.put(FORMAT_KEY, Buffer.from(String(FORMAT_VERSION)));
      tables.meta.put(key, value!.bytes);
    });
  } finally {
    await root.close();
  }
  return head;
}

/** Throws `data_corrupt` for the first thing that is wrong. */
function checkFile(path: string): CheckedTables {
  const pages = LmdbPages.open(path);
  try {
    return checkTables(
      pages,
      (where, what) => {
        throw damaged(path, where === '' ? what : `${where}: ${what}`);
      },
      // A collection reads its log when it is loaded, and only that collection is unavailable when it is damaged.
      { withRecords: false },
    );
  } finally {
    pages.close();
  }
}

class LmdbTables implements Tables {
  readonly #directory: string;
  readonly #environment: Environment;
  #failure: SagittaError | undefined;
  #copying: Promise<void> | undefined;
  #readerCount = 0;
  /** Whether pages may have become free since the last release of free pages began. */
  #hasUnreleased = true;
  /** Since `startRelease`, until there is nothing more to release. */
  #release: FreePageRelease | undefined;
  #isReleaseBegun = false;
  readonly #reserve: SpaceReserve;

  static async open(directory: string): Promise<LmdbTables> {
    const environment = await openEnvironment(join(directory, STORE_FILE));
    const tables = new LmdbTables(directory, environment);
    try {
      await syncFolder(directory);
      await tables.#reserve.fill();
    } catch (error) {
      await tables.close();
      throw error;
    }
    return tables;
  }

  private constructor(directory: string, environment: Environment) {
    this.#directory = directory;
    this.#environment = environment;
    this.#reserve = new SpaceReserve(directory);
  }

  async write(writes: readonly PlannedWrite[], makesRoom: boolean): Promise<void> {
    const byteCount = spaceFor(writes);
    if (!hasFreeSpace(this.#directory, byteCount)) await this.#releaseAll();
    if (makesRoom && !hasFreeSpace(this.#directory, byteCount)) await this.#reserve.giveUp();
    // Checked before, since lmdb handles a full disk badly: its error message overflows a buffer. A free
    // page of the file does not count: it may be a hole.
    requireFreeSpace(this.#directory, byteCount);
    this.#hasUnreleased = true;
    await this.#transact((tables) => {
      for (const { table, key, value } of writes) {
        if (value === undefined) tables[table].remove(key);
        else tables[table].put(key, value.bytes);
      }
    });
    await this.#reserve.fill();
  }

  get(table: TableName, key: Buffer): Uint8Array | undefined {
    return this.#read(() => {
      const value = this.#environment.tables[table].getBinary(key);
      return value && asPlainBytes(value);
    });
  }

  readPage(table: TableName, range: KeyRange): TableEntry[] {
    return this.#readPage(table, range);
  }

  openReader(): TableReader {
    const { root } = this.#environment;
    // So that it is a transaction of now.
    root.resetReadTxn();
    const transaction = this.#read(() => root.useReadTransaction());
    this.#readerCount++;
    return {
      readPage: (table, range) => this.#readPage(table, { ...range, transaction }),
      close: () => {
        this.#readerCount--;
        transaction.done();
      },
    };
  }

  #readPage(
    table: TableName,
    range: KeyRange & { readonly transaction?: Transaction },
  ): TableEntry[] {
    return this.#read(() => {
      const page: TableEntry[] = [];
      let byteCount = 0;
      for (const { key, value } of this.#environment.tables[table].getRange(range)) {
        page.push({ key, value: asPlainBytes(value) });
        byteCount += value.byteLength;
        if (page.length === PAGE_ENTRIES_MAX || byteCount >= PAGE_BYTES_MAX) break;
      }
      return page;
    });
  }

  readKeys(table: TableName, range: KeyRange, countMax: number): Buffer[] {
    return this.#read(() => [
      ...this.#environment.tables[table].getKeys({ ...range, limit: countMax }),
    ]);
  }

  async copyTo(path: string): Promise<void> {
    this.#copying = this.#copy(path);
    try {
      await this.#copying;
    } finally {
      this.#copying = undefined;
    }
  }

  /** Copies in a thread of lmdb with a read transaction, so writers do not wait. Free pages are left out. */
  async #copy(path: string): Promise<void> {
    const { root } = this.#environment;
    try {
      await root.backup(path, true);
    } catch (error) {
      // lmdb cannot compact a file with pages that are neither used nor free: copy it unchanged.
      if (!/MDB_INCOMPATIBLE/.test((error as Error).message)) throw error;
      await rm(path, { force: true });
      await root.backup(path, false);
    }
    await chmod(path, FILE_MODE);
  }

  startRelease(): void {
    this.#release = new FreePageRelease(this.#environment.path);
    this.#isReleaseBegun = false;
  }

  async releasePart(): Promise<boolean> {
    const release = this.#release;
    // They read pages that were freed since they began.
    const isRead = () => this.#copying !== undefined || this.#readerCount > 0;
    if (release === undefined || isRead()) return false;
    try {
      if (!this.#isReleaseBegun && hasFreeSpace(this.#directory, BATCH_OVERHEAD_BYTES)) {
        // Another transaction, since the pages that the last one freed belong to the state before it.
        await this.#writeFormat();
        this.#isReleaseBegun = true;
        this.#hasUnreleased = false;
      }
      this.#environment.root.resetReadTxn();
      if (this.#isReleaseBegun && !isRead() && release.releasePart()) return true;
    } catch {
      // The pages keep their space, and the next write finds out what is wrong with the disk or the file.
    }
    this.#release = undefined;
    return false;
  }

  /** For a write that finds no space; other work than writes goes on meanwhile. */
  async #releaseAll(): Promise<void> {
    if (this.#hasUnreleased) this.startRelease();
    while (await this.releasePart()) await nextTurn();
  }

  async close(): Promise<void> {
    await this.#copying?.catch(() => {});
    await this.#environment.root.close();
  }

  get failure(): SagittaError | undefined {
    return this.#failure;
  }

  #read<Result>(reading: () => Result): Result {
    try {
      return reading();
    } catch (error) {
      if (this.#failure !== undefined) throw this.#failure;
      throw damagedFile(this.#environment.path, error);
    }
  }

  #writeFormat(): Promise<void> {
    return this.#transact((tables) => {
      tables.meta.put(FORMAT_KEY, Buffer.from(String(FORMAT_VERSION)));
    });
  }

  /** See `commitTo`. Throws `storage_full`, `stopping` when the disk has failed, and errors of lmdb. */
  async #transact(change: (tables: Environment['tables']) => void): Promise<void> {
    const environment = this.#environment;
    this.#release?.forgetRanges();
    try {
      await commitTo(environment, () => change(environment.tables));
    } catch (cause) {
      const translated = translateDiskError(cause, this.#directory);
      if (this.#isUsable() && !isOfSystem(translated)) throw translated;
      this.#failure = storeFailure(cause);
      throw this.#failure;
    }
  }

  /** When lmdb could not write a meta page, it fails every call, and the next write would wait for ever. */
  #isUsable(): boolean {
    const { root, tables } = this.#environment;
    try {
      root.resetReadTxn();
      tables.meta.getBinary(FORMAT_KEY);
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * Whether an error other than a full disk is of the system, or not known: those of lmdb itself have negative
 * codes. After a failed sync the system takes pages for written that are not, and what a disk with errors has
 * is not known.
 */
function isOfSystem(error: unknown): boolean {
  if (error instanceof SagittaError) return false;
  const { code } = error as { code?: unknown };
  return typeof code !== 'number' || code > 0;
}

function spaceFor(writes: readonly PlannedWrite[]): number {
  // Values are few and small: those of a checkpoint, for example, which trims a log.
  const hasRecords = writes.some(({ table, value }) => table === 'records' && value !== undefined);
  let byteCount = BATCH_OVERHEAD_BYTES + (hasRecords ? REMOVAL_SPACE_BYTES : 0);
  for (const { table, value } of writes) {
    const isSwept = table === 'records' && value === undefined;
    byteCount += isSwept
      ? SWEEP_OVERHEAD_BYTES
      : WRITE_OVERHEAD_BYTES + (value?.bytes.byteLength ?? 0);
  }
  return byteCount;
}

/** Clients read the message, so it names no path; the log has the cause. */
function storeFailure(cause: unknown): SagittaError {
  return new SagittaError(
    'stopping',
    'The disk reported an error while the data file was written, so the service ends. Whether this write is on the disk is known after its next start: repeat it then.',
    { cause },
  );
}

function damaged(path: string, what: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: ${what}. Run "sagitta verify" to find other damage, and restore a backup.`,
  );
}

function lostCommits(path: string, what: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged or an older copy: ${what}. Restore a backup.`,
  );
}

/** Without the members that lmdb adds to its Buffers. */
function asPlainBytes(bytes: Buffer): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
