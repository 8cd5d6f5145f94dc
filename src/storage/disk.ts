// Folders and files that survive a crash, and the error for a full disk.

import { statfsSync, writev as writevWithCallback } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';

const writev = promisify(writevWithCallback);

/** A system call writes less than 2 GiB; shorter ones let other requests use the disk in between. */
export const CALL_BYTES_MAX = 64 * 1024 * 1024;
/** A system call takes no more parts. */
const CALL_PARTS_MAX = 1024;

/** `storage_full` for errors that mean a full disk; other errors unchanged. */
export function translateDiskError(error: unknown): unknown {
  if (error instanceof SagittaError) return error;
  const { code, errno } = error as NodeJS.ErrnoException;
  // Node has no name for a quota that is used up.
  const isFull = code === 'ENOSPC' || errno === -constants.errno.EDQUOT;
  return isFull ? storageFull(error) : error;
}

/** Throws `storage_full` unless the disk of the directory has this much free space. */
export function requireFreeSpace(directory: string, byteCount: number): void {
  if (!hasFreeSpace(directory, byteCount)) throw storageFull(undefined);
}

export function hasFreeSpace(directory: string, byteCount: number): boolean {
  return diskSpace(directory).freeBytes >= byteCount;
}

/**
 * Left free by records of logs and by blobs, for commits that remove: a collection can be deleted although
 * the disk is full, unless others than the service have filled it.
 */
export const REMOVAL_SPACE_BYTES = 8 * 1024 * 1024;

/** With less free space, room is made for what comes next before it is asked for. */
const LOW_BYTES = 1024 * 1024 * 1024;

export function isDiskLow(directory: string): boolean {
  return !hasFreeSpace(directory, LOW_BYTES);
}

/** Takes microseconds: the file system does not read the disk for it. */
export function diskSpace(directory: string): { freeBytes: number; totalBytes: number } {
  const { bavail, blocks, bsize } = statfsSync(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Clients read the message, so it names no path. */
function storageFull(cause: unknown): SagittaError {
  return new SagittaError(
    'storage_full',
    'There is no space left on the disk; nothing was written. Reads still work. Delete collections that are not needed, or make room on the disk, and write again.',
    { cause },
  );
}

/** Only the user of the service may read vectors, key digests and the cursor secret. */
export const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;

/**
 * Makes the folder and missing parents, and syncs the entry of each: an fsynced file can still be lost
 * with its name, which belongs to the folder.
 */
export async function makeFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  if ((await stat(path).catch(() => undefined))?.isDirectory() === true) return;
  const above = dirname(path);
  // Not with mkdir's `recursive`, which loops for ever on file systems such as /proc.
  if (above !== path) await makeFolder(above);
  await mkdir(path, { mode: FOLDER_MODE }).catch((error: NodeJS.ErrnoException) => {
    // Another process made it in the meantime. If it is not a folder, its first use fails.
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

/** Writes all of the parts one after another from `position` on: the system may write less than it is asked to. */
export async function writeAll(
  descriptor: number,
  parts: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let left = parts.filter(({ byteLength }) => byteLength > 0);
  while (left.length > 0) {
    const count = countWithin(left, CALL_BYTES_MAX);
    const first = left[0]!.subarray(0, CALL_BYTES_MAX);
    const some = count === 0 ? [first] : left.slice(0, count);
    const { bytesWritten } = await writev(descriptor, some, position);
    position += bytesWritten;
    left = without(left, bytesWritten);
  }
}

/** How many of the first parts have at most so many bytes together. */
function countWithin(parts: readonly Uint8Array[], byteCount: number): number {
  let count = 0;
  for (const { byteLength } of parts) {
    byteCount -= byteLength;
    if (byteCount < 0 || count === CALL_PARTS_MAX) break;
    count++;
  }
  return count;
}

function without(parts: readonly Uint8Array[], byteCount: number): Uint8Array[] {
  let first = 0;
  while (first < parts.length && byteCount >= parts[first]!.byteLength) {
    byteCount -= parts[first++]!.byteLength;
  }
  const left = parts.slice(first);
  if (byteCount > 0) left[0] = left[0]!.subarray(byteCount);
  return left;
}

/** Writes the parts one after another and syncs the file. */
export async function writeSyncedFile(path: string, parts: Iterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'w', FILE_MODE);
  try {
    let position = 0;
    for (const part of parts) {
      await writeAll(file.fd, [part], position);
      position += part.byteLength;
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Syncs a file that was written and closed before. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
