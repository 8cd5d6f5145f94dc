// Writes a backup of a running store, and restores one. A backup consists of a base with the whole state at one moment,
// each record checked against its checksum, and the blobs that this state refers to. Blobs never change, and the store
// keeps removed ones while a backup is being made.

import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { overloadedError, SagittaError } from '../common/errors.js';
import {
  type BackupMarker,
  digestOfFile,
  MARKER_FILE,
  readMarker,
  writeMarker,
} from './backup-marker.js';
import { type BaseSource, writeBase } from './base.js';
import { blobNamesIn } from './blob-files.js';
import { FOLDER_MODE, translateDiskError } from './disk.js';
import type { Head } from './frame.js';
import { fileName, JOURNAL_FOLDER, type JournalFiles } from './journal-files.js';
import { FileCopier, requireVacant, stageFolder } from './staged-folder.js';
import { StateView } from './state-view.js';
import type { DiskStore } from './store.js';
import { BLOB_FOLDER } from './store-format.js';
import { MARK_FILE, MarkFile } from './store-mark.js';

const BACKUP_BASE_NUMBER = 1;
/** The only journal file of a backup. */
export const BACKUP_BASE = join(JOURNAL_FOLDER, fileName(BACKUP_BASE_NUMBER, 'base'));

export interface BackupSource {
  readonly directory: string;
  /** The state at one moment; it must not change during the backup. */
  readonly base: Pick<BaseSource, 'state' | 'head' | 'seed'>;
  /** The journal files; those that the state refers to must stay. */
  readonly files: JournalFiles;
  blobPath(name: string): string;
  /** Reads a blob that is kept in part, with the blocks that are not; null for any other. */
  readPartial(name: string): Promise<Uint8Array | null>;
  /** Whether the store is closing, which cancels the backup. */
  isStopping(): boolean;
}

export function backupInProgress(): SagittaError {
  return overloadedError('Another backup is being made, and only one can run at a time.', {
    retryAfterSeconds: 10,
  });
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
    const translated = translateDiskError(error);
    if (!(translated instanceof SagittaError) || translated.code !== 'storage_full') {
      throw translated;
    }
    throw new SagittaError(
      'storage_full',
      `There is not enough space for the backup on the disk of ${dirname(resolve(folder))}. The incomplete backup was removed.`,
      { cause: error },
    );
  }
}

async function fill(
  source: BackupSource,
  staging: string,
  choose: Parameters<DiskStore['backup']>[1],
): Promise<BackupMarker> {
  const createdAt = new Date().toISOString();
  const view = new StateView(source.base.state, source.files);
  const { blobNames, collectionCount } = await choose((prefix) => view.list(prefix));
  const requireRunning = () => {
    if (!source.isStopping()) return;
    throw new SagittaError('stopping', 'The service is stopping; the backup was cancelled.');
  };
  await mkdir(join(staging, JOURNAL_FOLDER), { mode: FOLDER_MODE });
  const basePath = join(staging, BACKUP_BASE);
  await writeBase(basePath, BACKUP_BASE_NUMBER, {
    ...source.base,
    content: (extent, what) => source.files.read(extent, what),
    onFrame: requireRunning,
  });
  await writeMark(staging, source.base.head);
  const base = await digestOfFile(basePath);
  await mkdir(join(staging, BLOB_FOLDER), { mode: FOLDER_MODE });
  const copier = new FileCopier(await byteLengthOf(source, blobNames));
  let byteLength = base.byteLength;
  for (const name of blobNames) {
    requireRunning();
    const path = join(staging, BLOB_FOLDER, name);
    await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
    const bytes = await source.readPartial(name);
    // A backup is complete: the shared files may be lost with the node.
    if (bytes === null) byteLength += await copier.copy(source.blobPath(name), path);
    else byteLength += await copier.write(bytes, path);
  }
  const marker = { createdAt, byteLength, collectionCount, base };
  await writeMarker(staging, marker);
  return marker;
}

/** Writes the mark that matches the journal of the restored store. */
async function writeMark(staging: string, head: Head): Promise<void> {
  const mark = await MarkFile.open(staging, () => {});
  try {
    await mark.reset(head);
  } finally {
    await mark.close();
  }
}

async function byteLengthOf(source: BackupSource, blobNames: readonly string[]): Promise<number> {
  let byteLength = 0;
  for (const name of blobNames) {
    try {
      byteLength += (await stat(source.blobPath(name))).size;
    } catch (cause) {
      // Without this file the backup would only look complete.
      throw new SagittaError(
        'collection_unavailable',
        `The segment file ${name} cannot be copied: ${(cause as Error).message}. Run "sagitta verify" to find other damage, and delete the collection to back up the others.`,
        { cause },
      );
    }
  }
  return byteLength;
}

/** A backup inside the data directory would be lost together with it. */
function requireOutside(directory: string, folder: string): void {
  const own = resolve(directory);
  const target = resolve(folder);
  if (target !== own && !target.startsWith(own + sep)) return;
  throw new SagittaError(
    'invalid_request',
    `The backup ${target} would be inside the data directory ${own}. Choose a folder elsewhere, preferably on another disk.`,
  );
}

/**
 * Makes a data directory from a backup. Throws `configuration_invalid` for anything but a finished backup,
 * `backup_exists` if `directory` already exists, and `storage_full`; on failure nothing remains. The contents of the
 * files are not checked. `complete` may add files before the directory gets its final name, and returns their size in
 * bytes.
 */
export async function restoreBackup(
  backup: string,
  directory: string,
  complete: (staging: string) => Promise<number> = async () => 0,
): Promise<{ byteLength: number }> {
  await requireBackup(backup);
  const names = await listFiles(backup);
  let byteCount = 0;
  for (const name of names) byteCount += (await stat(join(backup, name))).size;
  try {
    return await stageFolder(directory, JOURNAL_FOLDER, async (staging) => {
      const copier = new FileCopier(byteCount);
      let byteLength = 0;
      for (const name of names) {
        await mkdir(dirname(join(staging, name)), { recursive: true, mode: FOLDER_MODE });
        byteLength += await copier.copy(join(backup, name), join(staging, name));
      }
      return { byteLength: byteLength + (await complete(staging)) };
    });
  } catch (error) {
    throw translateDiskError(error);
  }
}

/** Makes those checks of `restoreBackup` that read no data, with the same errors. */
export async function requireRestorable(backup: string, directory: string): Promise<void> {
  await requireBackup(backup);
  await requireVacant(directory);
}

async function requireBackup(folder: string): Promise<void> {
  if ((await readMarker(folder)) !== undefined) return;
  throw new SagittaError(
    'configuration_invalid',
    `${folder} is not a finished backup: it contains no ${MARKER_FILE}. Use another backup.`,
  );
}

async function listFiles(backup: string): Promise<string[]> {
  const names = [BACKUP_BASE];
  // The next start recreates a missing mark and warns about it.
  if ((await readdir(backup)).includes(MARK_FILE)) names.push(MARK_FILE);
  const blobs = await blobNamesIn(join(backup, BLOB_FOLDER));
  return [...names, ...blobs.map((name) => join(BLOB_FOLDER, name))];
}
