// What opening a store makes in a directory that has none. When the command that made it fails, exactly this
// is removed, so that the next command does not find an empty data directory. Everything else stays: files
// and folders that were there before, and whatever others have put into a folder since.

import { existsSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { LOCK_FOLDER } from './directory-lock.js';
import { RESERVE_FILE } from './space-reserve.js';
import { BLOB_FOLDER, STORE_FILE } from './store-format.js';
import { MARK_FILE } from './store-mark.js';

const FILES = [STORE_FILE, `${STORE_FILE}-lock`, MARK_FILE, RESERVE_FILE];

export class NewDirectory {
  /** In the order of removal. */
  readonly #folders: readonly string[];
  readonly #directory: string;
  #files: readonly string[] = [];
  #hasMadeBlobFolder = false;

  /** Called before the directory is locked, which makes folders. */
  constructor(directory: string) {
    this.#directory = directory;
    const folders = [CONTROL_FOLDER, LOCK_FOLDER].map((name) => join(directory, name));
    this.#folders = [...folders, directory].filter((path) => !existsSync(path));
  }

  /** Called with the lock, before the files of a new store are made in the directory. */
  noteFiles(): void {
    const isMissing = (name: string) => !existsSync(join(this.#directory, name));
    this.#files = FILES.filter(isMissing);
    this.#hasMadeBlobFolder = isMissing(BLOB_FOLDER);
  }

  /** Removes the files of the store, which has no blobs; the caller has the lock of the directory. */
  async removeFiles(): Promise<void> {
    for (const name of this.#files) await rm(join(this.#directory, name), { force: true });
    if (this.#hasMadeBlobFolder) await removeEmpty(join(this.#directory, BLOB_FOLDER));
  }

  /** Removes the folders that are empty: another process may have locked the directory by now. */
  async removeFolders(): Promise<void> {
    for (const folder of this.#folders) await removeEmpty(folder);
  }
}

async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch(() => {});
}
