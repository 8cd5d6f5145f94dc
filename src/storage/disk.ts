// Folders and files that survive a crash, and the error for a full disk.

import { statfsSync, statSync } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, resolve } from 'node:path';
import { SagittaError } from '../common/errors.js';

/** A system call writes less than 2 GiB; shorter ones let other requests use the disk in between. */
export const CALL_BYTES_MAX = 64 * 1024 * 1024;

const DISK_FULL = /ENOSPC|EDQUOT|MDB_MAP_FULL|No space left|quota exceeded/i;
/** lmdb reports a write that fit only in part as this. */
const INPUT_OUTPUT = /EIO|Input\/output error/i;
/** With less free space than this, such an error means a full disk. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

/** `storage_full` for errors that mean a full disk; other errors unchanged. */
export function translateDiskError(error: unknown, directory: string): unknown {
  if (error instanceof SagittaError) return error;
  const { code, errno, message } = error as NodeJS.ErrnoException;
  const text = `${code} ${message}`;
  const isFull =
    DISK_FULL.test(text) ||
    // Node has no name for it.
    errno === -constants.errno.EDQUOT ||
    (INPUT_OUTPUT.test(text) && diskSpace(directory).freeBytes < FREE_BYTES_MIN);
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

/** What a file takes on the disk: without its holes. */
export function diskBytesOf(path: string): number {
  return statSync(path).blocks * 512;
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

/** Writes the parts one after another and syncs the file. */
export async function writeSyncedFile(path: string, parts: Iterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'w', FILE_MODE);
  try {
    for (const part of parts) {
      for (let at = 0; at < part.byteLength; ) {
        const length = Math.min(part.byteLength - at, CALL_BYTES_MAX);
        at += (await file.write(part, at, length)).bytesWritten;
      }
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
