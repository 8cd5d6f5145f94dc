// The one failure of a disk that a user can mend: no room, told apart from the rest.

import { statfsSync } from 'node:fs';
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
