// A data directory that has just been made. What a command made that then failed is removed, so that the
// next command does not find an empty data directory. Files of others stay.

import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTROL_FOLDER } from '../common/unix-socket.js';
import { LOCK_FOLDER } from './directory-lock.js';
import { BLOB_FOLDER, STORE_FILE } from './store-format.js';

export class NewDirectory {
  readonly #directory: string;
  readonly #wasMissing: boolean;

  /** `wasMissing`: the directory itself was made, too. */
  constructor(directory: string, { wasMissing }: { wasMissing: boolean }) {
    this.#directory = directory;
    this.#wasMissing = wasMissing;
  }

  /** Removes the files of the store; the caller has the lock of the directory. */
  async removeFiles(): Promise<void> {
    for (const name of [STORE_FILE, `${STORE_FILE}-lock`, BLOB_FOLDER]) {
      await rm(join(this.#directory, name), { recursive: true, force: true });
    }
  }

  /** Removes the folders that are empty: another process may have locked the directory by now. */
  async removeFolders(): Promise<void> {
    const folders = [CONTROL_FOLDER, LOCK_FOLDER].map((name) => join(this.#directory, name));
    if (this.#wasMissing) folders.push(this.#directory);
    for (const folder of folders) await rmdir(folder).catch(() => {});
  }
}
