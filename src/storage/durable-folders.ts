// Folders whose entries are on disk. A file that is fsynced can still be lost with its name: the
// name belongs to the folder, and a new folder's name to the folder above it.

import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

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
