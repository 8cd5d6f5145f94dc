// Makes a folder that appears complete or not at all: it is filled under a temporary name, synced, and renamed. The
// next attempt removes the remains of an interrupted one.

import { constants } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { SagittaError } from '../common/errors.js';
import {
  FILE_MODE,
  FOLDER_MODE,
  makeFolder,
  requireFreeSpace,
  syncFile,
  syncFolder,
  writeSyncedFile,
} from './disk.js';

/** Backups and blobs never have such a name. */
const isUnfinished = (name: string) => name.startsWith('.') && name.endsWith('.unfinished');

/**
 * `fill` writes into a temporary folder, which is then renamed to `folder`. It must sync its files; folders are synced
 * here. If it throws, nothing remains. Throws `backup_exists` if `folder` already exists. A mount point cannot be
 * replaced, so entries are moved into it one by one, `lastName` last.
 */
export async function stageFolder<Result>(
  folder: string,
  lastName: string,
  fill: (staging: string) => Promise<Result>,
): Promise<Result> {
  const target = resolve(folder);
  const parent = dirname(target);
  await makeFolder(parent);
  await requireVacant(target);
  const isMount = await isMountPoint(target);
  const staging = join(isMount ? target : parent, stagingName(target));
  await rm(staging, { recursive: true, force: true });
  let isFilled = false;
  try {
    await mkdir(staging, { mode: FOLDER_MODE });
    const result = await fill(staging);
    await syncFolders(staging);
    isFilled = true;
    if (isMount) await moveEntries(staging, target, lastName);
    else await rename(staging, target);
    await syncFolder(isMount ? target : parent);
    return result;
  } catch (error) {
    // The folder was renamed before the error, which came from the sync of its parent, for example.
    const isRenamed = isFilled && !isMount && (await isMissing(staging));
    await rm(isRenamed ? target : staging, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') throw occupied(target);
    throw error;
  }
}

/** Removes the remains of interrupted attempts in `parent`. No attempt may be running there. */
export async function removeUnfinished(parent: string): Promise<void> {
  const names = await readdir(parent).catch(() => []);
  for (const name of names.filter(isUnfinished)) {
    await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** Copies, writes and syncs files. Copies share disk blocks with the originals if the file system supports it. */
export class FileCopier {
  #mayShare = true;
  #bytesLeft: number;

  /** @param byteCount total size of all files to copy. */
  constructor(byteCount: number) {
    this.#bytesLeft = byteCount;
  }

  /**
   * Returns the size of the file. Throws errors of the system, and `storage_full` before writing if the remaining files
   * do not fit.
   */
  async copy(from: string, to: string): Promise<number> {
    const { size } = await stat(from);
    if (!this.#mayShare || !(await shareBlocks(from, to))) {
      if (this.#mayShare) {
        this.#mayShare = false;
        await requireFreeSpace(dirname(to), this.#bytesLeft);
      }
      await copyFile(from, to, constants.COPYFILE_EXCL);
    }
    // The mode must not depend on that of the original.
    await chmod(to, FILE_MODE);
    await syncFile(to);
    this.#bytesLeft -= size;
    return size;
  }

  /** Writes a file of which there is no copy. Otherwise like `copy`. */
  async write(bytes: Uint8Array, to: string): Promise<number> {
    await requireFreeSpace(dirname(to), bytes.byteLength);
    await writeSyncedFile(to, [bytes]);
    this.#bytesLeft -= bytes.byteLength;
    return bytes.byteLength;
  }
}

async function shareBlocks(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw error;
    await rm(to, { force: true });
    return false;
  }
}

const stagingName = (target: string) => `.${basename(target)}.unfinished`;

function isMissing(path: string): Promise<boolean> {
  return lstat(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
  );
}

async function isMountPoint(target: string): Promise<boolean> {
  const found = await stat(target).catch(() => undefined);
  return found?.isDirectory() === true && found.dev !== (await stat(dirname(target))).dev;
}

/** Throws `backup_exists` unless the folder is missing or empty. */
export async function requireVacant(folder: string): Promise<void> {
  const target = resolve(folder);
  // A new file system contains a folder lost+found.
  const ignored = (await isMountPoint(target)) ? [stagingName(target), 'lost+found'] : [];
  // Even a dangling link counts as existing.
  const found = await lstat(target).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isDirectory()) throw occupied(target);
  const names = await readdir(target);
  if (names.some((name) => !ignored.includes(name))) throw occupied(target);
}

async function moveEntries(from: string, to: string, lastName: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => name !== lastName);
  for (const name of [...names, lastName]) {
    // The last entry marks the folder as complete, so the others must be on disk before it.
    if (name === lastName) await syncFolder(to);
    await rename(join(from, name), join(to, name));
  }
  await rmdir(from);
}

function occupied(target: string): SagittaError {
  return new SagittaError('backup_exists', `${target} already exists and was not changed.`);
}

async function syncFolders(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncFolders(join(folder, entry.name));
  }
  await syncFolder(folder);
}
