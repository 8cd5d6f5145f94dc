// Folders and files that survive a crash, and the one failure of a disk that a user can fix: no room.

import { statfsSync } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { SagittaError } from '../common/errors.js';

const NO_ROOM = /ENOSPC|EDQUOT|MDB_MAP_FULL|No space left|quota exceeded/i;
/** lmdb reports a write that fitted only in part as this. */
const INPUT_OUTPUT = /EIO|Input\/output error/i;
/** With less than this left, a write that fitted only in part met a full disk. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

/** `storage_full` for whatever means that there is no room; other errors as they are. */
export function translateDiskError(error: unknown, directory: string): unknown {
  if (error instanceof SagittaError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const text = `${code} ${message}`;
  const isFull =
    NO_ROOM.test(text) || (INPUT_OUTPUT.test(text) && freeBytes(directory) < FREE_BYTES_MIN);
  return isFull ? storageFull(error) : error;
}

/** Throws `storage_full` unless the disk of the directory has room for so many bytes more. */
export function assertRoom(directory: string, byteCount: number): void {
  if (freeBytes(directory) < byteCount) throw storageFull(undefined);
}

/** The file system knows this without looking at the disk, in microseconds. */
function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Clients read it, so it names no path. */
function storageFull(cause: unknown): SagittaError {
  return new SagittaError(
    'storage_full',
    'There is no room left on the disk; nothing was written. Reads go on, and writes resume when there is room.',
    { cause },
  );
}

/** Vectors, digests of keys, the secret of cursors: for the user of the service alone. */
export const FOLDER_MODE = 0o700;

/** Makes the folder and those above it that are missing, each one's name on disk. */
export async function makeFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  if ((await stat(path).catch(() => undefined))?.isDirectory() === true) return;
  const above = dirname(path);
  // Not mkdir's own way up, which never ends where the system says that nothing is there (/proc).
  if (above !== path) await makeFolder(above);
  await mkdir(path, { mode: FOLDER_MODE }).catch((error: NodeJS.ErrnoException) => {
    // Somebody else has made it meanwhile; what is no folder is said by whoever uses it.
    if (error.code !== 'EEXIST') throw error;
  });
  await syncFolder(above);
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
