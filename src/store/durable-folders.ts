// Folders whose entries are on disk. A file that is fsynced can still be lost with its name: the
// name belongs to the folder, and a new folder's name to the folder above it.

import { mkdir, open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

/** Makes the folder and those above it that are missing, each one's name on disk. */
export async function makeFolder(folder: string): Promise<void> {
  const firstMade = await mkdir(folder, { recursive: true });
  if (firstMade === undefined) return;
  const last = dirname(resolve(firstMade));
  let above = resolve(folder);
  do {
    above = dirname(above);
    await syncFolder(above);
  } while (above !== last);
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
