// Crash-safe folders and files, and the error for a full disk.

import { writev as writevWithCallback } from 'node:fs';
import { mkdir, open, stat, statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { SagittaError } from '../common/errors.js';

const writev = promisify(writevWithCallback);

/** A system call writes less than 2 GiB at a time; shorter calls let other requests use the disk in between. */
export const CALL_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that are copied where the system call cannot read them. */
const COPY_BYTES_MAX = 1024 * 1024;
/** Maximum number of parts per system call. */
const CALL_PARTS_MAX = 1024;

/** Turns an error that means a full disk into `storage_full`; returns other errors unchanged. */
export function translateDiskError(error: unknown): unknown {
  if (error instanceof SagittaError) return error;
  const { code, errno } = error as NodeJS.ErrnoException;
  // Node has no name for an exceeded quota.
  const isFull = code === 'ENOSPC' || errno === -constants.errno.EDQUOT;
  return isFull ? storageFull(error) : error;
}

/** Throws `storage_full` unless this many bytes are free on the disk. */
export async function requireFreeSpace(directory: string, byteCount: number): Promise<void> {
  const { freeBytes } = await readDiskSpace(directory);
  if (freeBytes < byteCount) throw storageFull(undefined);
}

/**
 * Log records and blobs leave this much space free for commits that remove something. A collection can therefore be
 * deleted on a full disk, unless other processes filled it.
 */
export const REMOVAL_SPACE_BYTES = 8 * 1024 * 1024;

export interface DiskSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/**
 * Takes microseconds on most file systems, which answer it from memory. It is asynchronous because others ask a server
 * or another process, which may not respond for minutes.
 */
export async function readDiskSpace(directory: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Clients read this message, so it contains no path. */
export function storageFull(cause?: unknown): SagittaError {
  return new SagittaError(
    'storage_full',
    'There is no space left on the disk; nothing was written. Reads still work. Delete unneeded collections or free space on the disk, then write again.',
    { cause },
  );
}

/** Only the user of the service may read vectors, key digests and the cursor secret. */
export const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;

/**
 * Makes the folder and its missing parents, and syncs each parent: an fsynced file can still be lost if the folder
 * entry with its name is not on disk.
 */
export async function makeFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  if ((await stat(path).catch(() => undefined))?.isDirectory() === true) return;
  const above = dirname(path);
  // The `recursive` option of mkdir loops forever on file systems such as /proc.
  if (above !== path) await makeFolder(above);
  await mkdir(path, { mode: FOLDER_MODE }).catch((error: NodeJS.ErrnoException) => {
    // Another process made it meanwhile. If it is not a folder, its first use fails.
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

/** Writes all parts in sequence from `position` on, with as many system calls as that takes. */
export async function writeParts(
  descriptor: number,
  parts: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let left = parts.filter(({ byteLength }) => byteLength > 0);
  while (left.length > 0) {
    const count = countWithin(left, CALL_BYTES_MAX);
    const first = left[0]!.subarray(0, CALL_BYTES_MAX);
    const some = count === 0 ? [first] : left.slice(0, count);
    const bytesWritten = await writeSome(descriptor, some, position);
    position += bytesWritten;
    left = skipBytes(left, bytesWritten);
  }
}

async function writeSome(
  descriptor: number,
  parts: readonly Uint8Array[],
  position: number,
): Promise<number> {
  try {
    return (await writev(descriptor, parts, position)).bytesWritten;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EFAULT') throw error;
    // The kernel does not wait for the blocks of partial blobs, but this thread does.
    const copy = Buffer.from(parts[0]!.subarray(0, COPY_BYTES_MAX));
    return (await writev(descriptor, [copy], position)).bytesWritten;
  }
}

/** Counts the leading parts that fit into `byteCount` bytes together. */
function countWithin(parts: readonly Uint8Array[], byteCount: number): number {
  let count = 0;
  for (const { byteLength } of parts) {
    byteCount -= byteLength;
    if (byteCount < 0 || count === CALL_PARTS_MAX) break;
    count++;
  }
  return count;
}

function skipBytes(parts: readonly Uint8Array[], byteCount: number): Uint8Array[] {
  let first = 0;
  while (first < parts.length && byteCount >= parts[first]!.byteLength) {
    byteCount -= parts[first++]!.byteLength;
  }
  const left = parts.slice(first);
  if (byteCount > 0) left[0] = left[0]!.subarray(byteCount);
  return left;
}

/** The bytes of a file in pieces, which are asked for when they can be written. */
export type FileParts = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Writes all parts in sequence and syncs the file. */
export async function writeSyncedFile(path: string, parts: FileParts): Promise<void> {
  const file = await open(path, 'w', FILE_MODE);
  try {
    let position = 0;
    for await (const part of parts) {
      await writeParts(file.fd, [part], position);
      position += part.byteLength;
    }
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Syncs a file that was already written and closed. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
