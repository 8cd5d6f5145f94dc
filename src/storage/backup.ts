// Makes a backup of a store that goes on: first the tables, which lmdb copies as they are at one
// moment, then the blobs that they name. Blobs never change, and the caller keeps those that are
// removed meanwhile.

import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { SagittaError } from '../common/errors.js';
import {
  type BackupMarker,
  digestOfFile,
  MARKER_FILE,
  readMarker,
  writeMarker,
} from './backup-marker.js';
import { syncFile, translateDiskError } from './disk.js';
import { LmdbPages } from './lmdb-pages.js';
import { FileCopier, requireVacant, stageFolder } from './staged-folder.js';
import type { DiskStore, ListKept } from './store.js';
import { BLOB_FOLDER, decodeKey, rangeUnder, STORE_FILE } from './store-format.js';

export interface BackupSource {
  readonly directory: string;
  /** Writes the tables of one moment to a new file. */
  copyTables(path: string): Promise<void>;
  blobPath(name: string): string;
  /** Whether the store is being closed and the backup shall give up. */
  isStopping(): boolean;
}

/** See `DiskStore.backup`. */
export async function writeBackup(
  source: BackupSource,
  folder: string,
  choose: Parameters<DiskStore['backup']>[1],
): Promise<BackupMarker> {
  requireOutside(source.directory, folder);
  try {
    return await stageFolder(folder, MARKER_FILE, (staging) => fill(source, staging, choose));
  } catch (error) {
    const translated = translateDiskError(error, dirname(resolve(folder)));
    if (!(translated instanceof SagittaError) || translated.code !== 'storage_full') {
      throw translated;
    }
    throw new SagittaError(
      'storage_full',
      `There is no room for the backup on the disk of ${dirname(resolve(folder))}; nothing was left behind there.`,
      { cause: error },
    );
  }
}

async function fill(
  source: BackupSource,
  staging: string,
  choose: Parameters<DiskStore['backup']>[1],
): Promise<BackupMarker> {
  const storePath = join(staging, STORE_FILE);
  const createdAt = new Date().toISOString();
  await source.copyTables(storePath);
  await syncFile(storePath);
  const { blobNames, collectionCount } = await readKept(storePath, choose);
  const storeFile = await digestOfFile(storePath);
  await mkdir(join(staging, BLOB_FOLDER));
  const copier = new FileCopier(await byteLengthOf(source, blobNames));
  let byteLength = storeFile.byteLength;
  for (const name of blobNames) {
    if (source.isStopping()) {
      throw new SagittaError('stopping', 'The service is stopping; the backup was given up.');
    }
    const path = join(staging, BLOB_FOLDER, name);
    await mkdir(dirname(path), { recursive: true });
    byteLength += await copier.copy(source.blobPath(name), path);
  }
  const marker = { createdAt, byteLength, collectionCount, storeFile };
  await writeMarker(staging, marker);
  return marker;
}

/** From the copy: the store itself has gone on. */
async function readKept(
  storePath: string,
  choose: Parameters<DiskStore['backup']>[1],
): ReturnType<Parameters<DiskStore['backup']>[1]> {
  const pages = LmdbPages.open(storePath);
  try {
    pages.readTables();
    const list: ListKept = function* (prefix) {
      for (const { key, value } of pages.entries('values', rangeUnder(prefix))) {
        const bytes = value();
        if (bytes !== undefined) yield { key: decodeKey(key), value: bytes };
      }
    };
    return await choose(list);
  } finally {
    pages.close();
  }
}

async function byteLengthOf(source: BackupSource, blobNames: readonly string[]): Promise<number> {
  let byteLength = 0;
  for (const name of blobNames) {
    try {
      byteLength += (await stat(source.blobPath(name))).size;
    } catch (cause) {
      // A copy of what is broken would pass for a backup.
      throw new SagittaError(
        'collection_unavailable',
        `The segment file ${name} cannot be copied: ${(cause as Error).message}. "sagitta verify" tells what else is broken; delete that collection to make backups of the others.`,
        { cause },
      );
    }
  }
  return byteLength;
}

/** It would be lost with what it is a copy of. */
function requireOutside(directory: string, folder: string): void {
  const own = resolve(directory);
  const target = resolve(folder);
  if (target !== own && !target.startsWith(own + sep)) return;
  throw new SagittaError(
    'invalid_request',
    `The backup ${target} would lie in the data directory ${own} itself; name a folder elsewhere, best on another disk.`,
  );
}

/**
 * Throws `configuration_invalid` for what is no finished backup, `backup_exists` when there is
 * something at `directory` already, and `storage_full`; then nothing is left of it.
 */
export async function restoreBackup(
  backup: string,
  directory: string,
): Promise<{ byteLength: number }> {
  await requireBackup(backup);
  const names = await listFiles(backup);
  let byteCount = 0;
  for (const name of names) byteCount += (await stat(join(backup, name))).size;
  try {
    return await stageFolder(directory, STORE_FILE, async (staging) => {
      const copier = new FileCopier(byteCount);
      let byteLength = 0;
      for (const name of names) {
        await mkdir(dirname(join(staging, name)), { recursive: true });
        byteLength += await copier.copy(join(backup, name), join(staging, name));
      }
      return { byteLength };
    });
  } catch (error) {
    throw translateDiskError(error, dirname(directory));
  }
}

/** What can be told before the backup is read: throws like `restoreBackup`. */
export async function requireRestorable(backup: string, directory: string): Promise<void> {
  await requireBackup(backup);
  await requireVacant(directory);
}

async function requireBackup(folder: string): Promise<void> {
  if ((await readMarker(folder)) !== undefined) return;
  throw new SagittaError(
    'configuration_invalid',
    `${folder} is not a finished backup: there is no ${MARKER_FILE} in it.`,
  );
}

async function listFiles(backup: string): Promise<string[]> {
  const names = [STORE_FILE];
  const folders = await readdir(join(backup, BLOB_FOLDER), { withFileTypes: true });
  for (const { name } of folders.filter((entry) => entry.isDirectory())) {
    for (const file of await readdir(join(backup, BLOB_FOLDER, name))) {
      names.push(join(BLOB_FOLDER, name, file));
    }
  }
  return names;
}
