// Makes a data directory of a backup: a copy, under its name only when all of it is there and synced.
// What the files hold is not looked at here.

import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SagittaError } from '../common/errors.js';
import { MARKER_FILE, readMarker } from './backup-marker.js';
import { translateDiskError } from './disk-errors.js';
import { FileCopier, requireVacant, stageFolder } from './staged-folder.js';
import { BLOB_FOLDER, STORE_FILE } from './write-backup.js';

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
