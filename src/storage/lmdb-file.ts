// Looks at lmdb's files before lmdb does. Whatever keeps lmdb from opening kills the process, and so
// does a page that is missing at the end of the file; here both become errors that say what is wrong.

import { type FileHandle, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { assertRoom } from './disk-errors.js';
import {
  LAST_PAGE_OFFSET,
  MAGIC,
  MAGIC_OFFSET,
  notLmdb,
  PAGE_BYTES_OFFSET,
  VERSION,
  VERSION_OFFSET,
} from './lmdb-meta.js';

// A meta page: a header of 24 bytes, then what is read here. Little-endian on every machine we know.
const META_BYTES = 160;

/** A first start that lost power leaves nothing but zeros in at most so many bytes. */
const BLANK_BYTES_MAX = 256 * 1024;
/** More than lmdb's table of readers takes. */
const LOCK_FILE_BYTES = 16 * 1024;
/** For the first pages of a new file. */
const NEW_FILE_BYTES = 1024 * 1024;

interface Meta {
  readonly isValid: boolean;
  readonly pageBytes: number;
  readonly lastPage: number;
}

/**
 * `mayBeNew`: nothing else is there that a file without content could have belonged to. Throws
 * `data_corrupt`, `configuration_invalid` when access is denied, and `storage_full`.
 */
export async function prepareLmdbFiles(
  path: string,
  { mayBeNew }: { mayBeNew: boolean },
): Promise<void> {
  // lmdb writes the lock file through a mapping: room that is not there then is a fatal signal.
  await inFile(`${path}-lock`, 'a+', async (file) => {
    const { size } = await file.stat();
    if (size < LOCK_FILE_BYTES) await file.appendFile(Buffer.alloc(LOCK_FILE_BYTES - size));
  });
  const isBlank = await inFile(path, 'a+', async (file) => {
    const { size } = await file.stat();
    if (size <= BLANK_BYTES_MAX && (await isAllZero(file, size))) return true;
    await checkPages(path, file, size);
    return false;
  });
  if (!isBlank) return;
  if (!mayBeNew) {
    throw new SagittaError(
      'data_corrupt',
      `The file ${path} is missing or empty, but there are segment files beside it, which nothing can be told of without it. Restore a backup, or name another directory.`,
    );
  }
  await rm(path);
  assertRoom(dirname(path), NEW_FILE_BYTES);
}

async function checkPages(path: string, file: FileHandle, size: number): Promise<void> {
  const first = await readMeta(file, 0);
  const second = first.isValid ? await readMeta(file, first.pageBytes) : first;
  if (!second.isValid || second.pageBytes !== first.pageBytes) {
    throw notLmdb(path);
  }
  // What the pages were that are missing is found out when they are read as zeros.
  const byteLength = (Math.max(first.lastPage, second.lastPage) + 1) * first.pageBytes;
  if (size < byteLength) await file.truncate(byteLength);
}

async function readMeta(file: FileHandle, position: number): Promise<Meta> {
  const bytes = Buffer.alloc(META_BYTES);
  await file.read(bytes, 0, META_BYTES, position);
  const pageBytes = bytes.readUInt32LE(PAGE_BYTES_OFFSET);
  return {
    isValid:
      bytes.readUInt32LE(MAGIC_OFFSET) === MAGIC &&
      bytes.readUInt16LE(VERSION_OFFSET) === VERSION &&
      pageBytes >= META_BYTES,
    pageBytes,
    lastPage: Number(bytes.readBigUInt64LE(LAST_PAGE_OFFSET)),
  };
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
    file = await open(path, flags);
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
