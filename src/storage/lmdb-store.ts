// The embedded store: tables in one lmdb file, blobs as files beside it, one process at a time. A write
// resolves when it is on disk, and one that fails leaves nothing. TableStore groups the commits.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { SagittaError } from '../common/errors.js';
import { removeMarker } from './backup-marker.js';
import { BlobFiles } from './blob-files.js';
import type { PlannedWrite } from './commit-plan.js';
import { lockDirectory } from './directory-lock.js';
import {
  hasFreeSpace,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFolder,
  translateDiskError,
} from './disk.js';
import type { MappingRule } from './file-mapper.js';
import { releaseFreePages } from './free-pages.js';
import { prepareLmdbFiles } from './lmdb-file.js';
import { NewDirectory } from './new-directory.js';
import type { DiskStore } from './store.js';
import {
  BLOB_FOLDER,
  FORMAT_KEY,
  FORMAT_VERSION,
  type KeyRange,
  newerFormat,
  STORE_FILE,
  type TableName,
} from './store-format.js';
import { type TableEntry, TableStore, type Tables } from './table-store.js';

/** Entries per read. Between two reads no snapshot is open, which would keep old pages from reuse. */
const PAGE_ENTRIES_MAX = 256;
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Space reserved per write, for its own page and its share of the tree above. */
const WRITE_OVERHEAD_BYTES = 8 * 1024;
/** Of a record that is removed: its neighbours, which are removed with it, share their pages. */
const SWEEP_OVERHEAD_BYTES = 1024;
/** Reserved per batch, for the roots of the tables and the list of free pages. */
const BATCH_OVERHEAD_BYTES = 256 * 1024;

type Table = Database<Buffer, Buffer>;

interface Environment {
  readonly path: string;
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly tables: Readonly<Record<TableName | 'meta', Table>>;
}

/**
 * Throws `data_directory_locked` when another process has the directory, `configuration_invalid`
 * when it cannot be used or a newer version wrote it, `data_corrupt` when the file is damaged, and
 * `storage_full`.
 */
export async function openLmdbStore(options: {
  directory: string;
  /** Whether blobs can be mapped; `auto` by default. */
  mapping?: MappingRule;
}): Promise<DiskStore> {
  const { directory, mapping = 'auto' } = options;
  const wasMissing = !existsSync(directory);
  const lock = await lockDirectory(directory);
  const isNew = !existsSync(join(directory, STORE_FILE));
  let tables: LmdbTables | undefined;
  try {
    const blobs = await BlobFiles.open(join(directory, BLOB_FOLDER), mapping);
    tables = await LmdbTables.open(directory, { mayBeNew: blobs.wasEmpty });
    // A backup that is opened becomes a data directory.
    await removeMarker(directory);
    const newDirectory = isNew ? new NewDirectory(directory, { wasMissing }) : null;
    return new TableStore({ directory, tables, blobs, lock, newDirectory });
  } catch (error) {
    await tables?.close();
    await lock.release();
    throw translateDiskError(error, directory);
  }
}

class LmdbTables implements Tables {
  readonly #directory: string;
  #environment: Environment;
  #copying: Promise<void> | undefined;
  /** Whether pages may have become free since free pages were released. */
  #hasUnreleased = true;

  static async open(directory: string, options: { mayBeNew: boolean }): Promise<LmdbTables> {
    const path = join(directory, STORE_FILE);
    await prepareLmdbFiles(path, options);
    const tables = new LmdbTables(directory, await openEnvironment(path));
    try {
      await syncFolder(directory);
      await tables.#checkFormat();
    } catch (error) {
      await tables.close();
      throw error;
    }
    return tables;
  }

  private constructor(directory: string, environment: Environment) {
    this.#directory = directory;
    this.#environment = environment;
  }

  async write(writes: readonly PlannedWrite[]): Promise<void> {
    const byteCount = spaceFor(writes);
    if (!hasFreeSpace(this.#directory, byteCount)) await this.releaseFreePages();
    // Checked before, since lmdb handles a full disk badly: its error message overflows a buffer. A free
    // page of the file does not count: it may be a hole.
    requireFreeSpace(this.#directory, byteCount);
    this.#hasUnreleased = true;
    await this.#transact((tables) => {
      for (const { table, key, value } of writes) {
        if (value === undefined) tables[table].remove(key);
        else tables[table].put(key, asBuffer(value));
      }
    });
  }

  get(table: TableName, key: Buffer): Uint8Array | undefined {
    return this.#read(() => {
      const value = this.#environment.tables[table].getBinary(key);
      return value && asPlainBytes(value);
    });
  }

  readPage(table: TableName, range: KeyRange): TableEntry[] {
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

  readLastKey(table: TableName, range: KeyRange): Buffer | undefined {
    const reversed = { start: range.end, end: range.start, reverse: true, limit: 1 };
    return this.#read(() => [...this.#environment.tables[table].getKeys(reversed)][0]);
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
  }

  async releaseFreePages(): Promise<void> {
    // A copy reads pages that were freed since it began.
    if (!this.#hasUnreleased || this.#copying !== undefined) return;
    if (!hasFreeSpace(this.#directory, BATCH_OVERHEAD_BYTES)) return;
    try {
      // Another transaction, since the pages that the last one freed belong to the state before it.
      await this.#writeFormat();
      const { path, root } = this.#environment;
      root.resetReadTxn();
      this.#hasUnreleased = false;
      await releaseFreePages(path);
    } catch {
      // The pages keep their space, and the next write finds out what is wrong with the disk or the file.
    }
  }

  async close(): Promise<void> {
    await this.#copying?.catch(() => {});
    await this.#environment.root.close();
  }

  #read<Result>(reading: () => Result): Result {
    try {
      return reading();
    } catch (error) {
      throw damaged(this.#environment.path, error);
    }
  }

  async #checkFormat(): Promise<void> {
    const { tables } = this.#environment;
    const found = this.#read(() => tables.meta.getBinary(FORMAT_KEY));
    if (found === undefined) {
      await this.#writeFormat();
      return;
    }
    const version = found.toString();
    if (Number(version) !== FORMAT_VERSION) throw newerFormat(this.#directory, version);
  }

  #writeFormat(): Promise<void> {
    return this.#transact((tables) => {
      tables.meta.put(FORMAT_KEY, Buffer.from(String(FORMAT_VERSION)));
    });
  }

  /** Resolves when the changes are on disk. `change` must not throw, which would commit half of them. */
  async #transact(change: (tables: Environment['tables']) => void): Promise<void> {
    const { root, tables } = this.#environment;
    try {
      await root.batch(() => change(tables));
    } catch (error) {
      const cause = await causeOf(error);
      await this.#recover();
      throw translateDiskError(cause, this.#directory);
    }
  }

  /**
   * When lmdb could not write a meta page, it fails every call, and the next write would wait for ever.
   * Reopened, it is in the state before the failed transaction.
   */
  async #recover(): Promise<void> {
    const { path, root, tables } = this.#environment;
    try {
      root.resetReadTxn();
      tables.meta.getBinary(FORMAT_KEY);
    } catch {
      // A copy reads from the mapping that closing removes.
      await this.#copying?.catch(() => {});
      await root.close();
      this.#environment = await openEnvironment(path);
    }
  }
}

async function openEnvironment(path: string): Promise<Environment> {
  const root = openRoot(path);
  const openTable = (name: string): Table =>
    root.openDB({ name, encoding: 'binary', keyEncoding: 'binary' });
  try {
    const tables = {
      meta: openTable('meta'),
      values: openTable('values'),
      records: openTable('records'),
      trims: openTable('trims'),
    };
    return { path, root, tables };
  } catch (error) {
    await root.close();
    throw damaged(path, error);
  }
}

function openRoot(path: string): RootDatabase<Buffer, Buffer> {
  return open({
    path,
    // Makes a commit durable before it resolves: pwrite64 of the pages, fdatasync, pwrite64 of the meta
    // page through a descriptor with O_DSYNC (as strace shows). With overlapping sync, the default, the
    // meta page is written without a sync and readers see the commit before fdatasync is called.
    overlappingSync: false,
    // TableStore groups commits, because it has to know their order and which of them fail.
    eventTurnBatching: false,
    maxDbs: 4,
    encoding: 'binary',
    keyEncoding: 'binary',
  });
}

function spaceFor(writes: readonly PlannedWrite[]): number {
  // Values are few and small: those of a checkpoint, for example, which trims a log.
  const hasRecords = writes.some(({ table, value }) => table === 'records' && value !== undefined);
  let byteCount = BATCH_OVERHEAD_BYTES + (hasRecords ? REMOVAL_SPACE_BYTES : 0);
  for (const { table, value } of writes) {
    const isSwept = table === 'records' && value === undefined;
    byteCount += isSwept ? SWEEP_OVERHEAD_BYTES : WRITE_OVERHEAD_BYTES + (value?.byteLength ?? 0);
  }
  return byteCount;
}

/** lmdb rejects with an error that carries a promise of its cause. */
async function causeOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> };
  return commitError === undefined ? error : commitError.catch((cause: unknown) => cause);
}

/** Error numbers of lmdb are negative and mean a damaged file; others are those of the system. */
function damaged(path: string, error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message: string };
  if (typeof code !== 'number' || code >= 0) return error;
  return new SagittaError('data_corrupt', `The file ${path} is damaged: ${message}.`, {
    cause: error,
  });
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Without the members that lmdb adds to its Buffers. */
function asPlainBytes(bytes: Buffer): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
