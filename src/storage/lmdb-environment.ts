// Opens lmdb's file with the tables of a store, and translates its errors. The file was checked before.

import { dirname } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { SagittaError } from '../common/errors.js';
import { loadNativeFiles } from '../platform/native-files.js';
import { translateDiskError } from './disk.js';
import type { TableName } from './store-format.js';

type Table = Database<Buffer, Buffer>;

export interface Environment {
  readonly path: string;
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly tables: Readonly<Record<TableName, Table>>;
}

/**
 * Address space for the file, in bytes. lmdb maps a file that outgrows it anew, and crashes when the system
 * refuses that; at the start, the same is an error. A mapping takes no memory by itself.
 */
const MAP_BYTES = 64 * 1024 ** 3;

/** Makes the file if there is none. */
export async function openEnvironment(path: string): Promise<Environment> {
  const root = openRoot(path);
  const openTable = (name: string): Table =>
    root.openDB({ name, encoding: 'binary', keyEncoding: 'binary' });
  try {
    const tables = {
      meta: openTable('meta'),
      values: openTable('values'),
      records: openTable('records'),
      logs: openTable('logs'),
    };
    return { path, root, tables };
  } catch (error) {
    await root.close();
    throw damagedFile(path, error);
  }
}

/**
 * Commits the changes; resolves when they are on disk. Throws lmdb's error. `change` must not throw, which would commit
 * half of them.
 */
export async function commitTo({ root }: Environment, change: () => void): Promise<void> {
  try {
    await root.batch(change);
  } catch (error) {
    // lmdb rejects with an error that carries a promise of its cause, which must be waited for.
    const { commitError } = error as { commitError?: Promise<never> };
    await commitError;
    throw error;
  }
}

function openRoot(path: string): RootDatabase<Buffer, Buffer> {
  const native = loadNativeFiles();
  const guard = typeof native === 'object' && native.completeLmdbWrites() ? native : null;
  guard?.deferLmdbFrees(true);
  // lmdb would make files that others can read.
  const umask = process.umask(0o077);
  try {
    return openFile(path);
  } catch (error) {
    throw explainOpenError(path, error);
  } finally {
    process.umask(umask);
    guard?.deferLmdbFrees(false);
  }
}

function openFile(path: string): RootDatabase<Buffer, Buffer> {
  return open({
    path,
    mapSize: MAP_BYTES,
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

function explainOpenError(path: string, error: unknown): unknown {
  const translated = damagedFile(path, translateDiskError(error, dirname(path)));
  if (translated instanceof SagittaError) return translated;
  return new SagittaError(
    'configuration_invalid',
    `The data file ${path} cannot be opened: ${(error as Error).message}.`,
    { cause: error },
  );
}

/** Error numbers of lmdb are negative and mean a damaged file; others are those of the system. */
export function damagedFile(path: string, error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message: string };
  if (typeof code !== 'number' || code >= 0) return error;
  return new SagittaError(
    'data_corrupt',
    `The file ${path} is damaged: ${message}. Restore a backup.`,
    {
      cause: error,
    },
  );
}
