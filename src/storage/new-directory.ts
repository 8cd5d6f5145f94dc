// What opening a store makes in a directory that has none. When the command that made it fails, exactly this
// is removed, so that the next command does not find an empty data directory. Everything else stays: files
// and folders that were there before, and whatever others have put into a folder since.

import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { LOCK_FOLDER } from './directory-lock.js';
import { JOURNAL_FOLDER } from './journal-files.js';
import { BLOB_FOLDER } from './store-format.js';
import { MARK_FILE } from './store-mark.js';

/** Made with the lock, and so removed with it: who has it next needs them. */
const STORE_FOLDERS = [JOURNAL_FOLDER, BLOB_FOLDER];
const FOLDERS = [CONTROL_FOLDER, LOCK_FOLDER];

export class NewDirectory {
  readonly #storeFolders: readonly string[];
  /** In the order of removal. */
  readonly #folders: readonly string[];
  readonly #directory: string;
  readonly #hadMark: boolean;
  #isOfStore = false;

  /** Called before the directory is locked, which makes folders. */
  constructor(directory: string) {
    this.#directory = directory;
    const isMissing = (path: string) => !existsSync(path);
    this.#storeFolders = STORE_FOLDERS.map((name) => join(directory, name)).filter(isMissing);
    const folders = FOLDERS.map((name) => join(directory, name));
    this.#folders = [...folders, directory].filter(isMissing);
    this.#hadMark = existsSync(join(directory, MARK_FILE));
  }

  /** Called with the lock, before the files of a new store are made: there is none, so its files are new. */
  noteStore(): void {
    this.#isOfStore = true;
  }

  /** Removes the files of the store, which has no blobs, and their folders; the caller has the lock of the directory. */
  async removeFiles(): Promise<void> {
    if (this.#isOfStore) {
      if (!this.#hadMark) await rm(join(this.#directory, MARK_FILE), { force: true });
      const journal = join(this.#directory, JOURNAL_FOLDER);
      for (const name of await readdir(journal).catch(() => [])) {
        await rm(join(journal, name), { force: true });
      }
    }
    for (const folder of this.#storeFolders) await rmdir(folder).catch(() => {});
  }

  /** Removes the other folders that are empty: another process may have locked the directory by now. */
  async removeFolders(): Promise<void> {
    for (const folder of this.#folders) await rmdir(folder).catch(() => {});
  }
}
