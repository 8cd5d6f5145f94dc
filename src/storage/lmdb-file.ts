// Checks lmdb's first pages and its lock file before lmdb opens them. Damage or a full disk would kill the process
// inside lmdb; here they become errors that say what is wrong. store-check.ts has the other pages.

import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { FILE_MODE, requireFreeSpace } from './disk.js';
import { notLmdb, readMetaPage } from './lmdb-meta.js';

/** A first start that lost power leaves a file of zeros, of at most this size. */
const BLANK_BYTES_MAX = 256 * 1024;
/** More than lmdb needs for its table of readers. */
const LOCK_FILE_BYTES = 16 * 1024;
/** Free space required for a new file. */
const NEW_FILE_BYTES = 1024 * 1024;

/**
 * Returns whether there are tables in the file. Throws `data_corrupt`, `configuration_invalid` when access is
 * denied, and `storage_full`.
 * @param mayBeNew whether an empty file is fine, because nothing beside it belongs to a lost one.
 */
export async function prepareLmdbFiles(
  path: string,
  { mayBeNew }: { mayBeNew: boolean },
): Promise<boolean> {
  // lmdb writes its lock file through a mapping, where a full disk is a fatal signal.
  await inFile(`${path}-lock`, 'a+', async (file) => {
    const { size } = await file.stat();
    if (size < LOCK_FILE_BYTES) await file.appendFile(Buffer.alloc(LOCK_FILE_BYTES - size));
  });
  const isBlank = await inFile(path, 'a+', async (file) => {
    const { size } = await file.stat();
    if (size <= BLANK_BYTES_MAX && (await isAllZero(file, size))) return true;
    checkMetaPages(path, file);
    // After a failed write, the file and what the system has of it in memory may differ. lmdb would overwrite pages
    // that only one of the two states needs.
    await file.sync();
    return false;
  });
  if (!isBlank) return true;
  if (!mayBeNew) {
    throw new SagittaError(
      'data_corrupt',
      `The file ${path} is missing or empty, but there are segment files or a mark of commits beside it, which belong to a file that was lost. Restore a backup, or use another directory.`,
    );
  }
  await rm(path);
  requireFreeSpace(dirname(path), NEW_FILE_BYTES);
  return false;
}

function checkMetaPages(path: string, file: FileHandle): void {
  const first = readMetaPage(file.fd, 0);
  const second = first && readMetaPage(file.fd, first.pageBytes);
  if (first === undefined || second === undefined) throw notLmdb(path);
}

async function isAllZero(file: FileHandle, size: number): Promise<boolean> {
  const bytes = Buffer.alloc(size);
  await file.read(bytes, 0, size, 0);
  return bytes.every((byte) => byte === 0);
}

async function inFile<Result>(
  path: string,
  flags: string,
  use: (file: FileHandle) => Promise<Result>,
): Promise<Result> {
  let file: FileHandle;
  try {
    file = await open(path, flags, FILE_MODE);
  } catch (error) {
    throw new SagittaError(
      'configuration_invalid',
      `The data file ${path} cannot be opened: ${(error as Error).message}.`,
      { cause: error },
    );
  }
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}
