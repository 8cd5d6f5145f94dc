// Remembers what opening a store adds to a directory. If the command that opened it fails, exactly that is removed, so
// the next command does not find an empty data directory. Files and folders that existed before, or that others added
// since, stay.

import { existsSync } from 'node:fs';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { LOCK_FOLDER } from './directory-lock.js';
import { JOURNAL_FOLDER } from './journal-files.js';
import { BLOB_FOLDER } from './store-format.js';
import { MARK_FILE } from './store-mark.js';

/** Created and removed under the lock, because the next owner needs them. */
const STORE_FOLDERS = [JOURNAL_FOLDER, BLOB_FOLDER];
const FOLDERS = [CONTROL_FOLDER, LOCK_FOLDER];

export class NewDirectory {
  readonly #storeFolders: readonly string[];
  /** In the order of removal. */
  readonly #folders: readonly string[];
  readonly #directory: string;
  readonly #hadMark: boolean;
  #isStoreNew = false;

  /** Must run before the directory is locked, since locking creates folders. */
  constructor(directory: string) {
    this.#directory = directory;
    const isMissing = (path: string) => !existsSync(path);
    this.#storeFolders = STORE_FOLDERS.map((name) => join(directory, name)).filter(isMissing);
    const folders = FOLDERS.map((name) => join(directory, name));
    this.#folders = [...folders, directory].filter(isMissing);
    this.#hadMark = existsSync(join(directory, MARK_FILE));
  }

  /** Called under the lock if no store exists, before its files are created: all of them are new. */
  markStoreNew(): void {
    this.#isStoreNew = true;
  }

  /** Removes the files of the store, which must not contain blobs, and their folders. The caller must hold the lock. */
  async removeFiles(): Promise<void> {
    if (this.#isStoreNew) {
      if (!this.#hadMark) await rm(join(this.#directory, MARK_FILE), { force: true });
      const journal = join(this.#directory, JOURNAL_FOLDER);
      for (const name of await readdir(journal).catch(() => [])) {
        await rm(join(journal, name), { force: true });
      }
    }
    for (const folder of this.#storeFolders) await rmdir(folder).catch(() => {});
  }

  /** Removes the other folders if they are empty. Another process may have locked the directory by now. */
  async removeFolders(): Promise<void> {
    for (const folder of this.#folders) await rmdir(folder).catch(() => {});
  }
}
