// A file that only takes space, which is given up when a collection is deleted on a disk that others than the
// service have filled: the deletion has to write before it makes room.

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FILE_MODE, hasFreeSpace, REMOVAL_SPACE_BYTES } from './disk.js';

export const RESERVE_FILE = 'store.reserve';
/** Enough for the deletion and for the first of the batches that remove its records, whose space serves the next. */
const RESERVE_BYTES = 2 * 1024 * 1024;

export class SpaceReserve {
  readonly #directory: string;
  readonly #path: string;
  #isThere: boolean;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, RESERVE_FILE);
    const found = statSync(this.#path, { throwIfNoEntry: false });
    this.#isThere = found !== undefined && found.size >= RESERVE_BYTES;
  }

  /** Frees the space. Never throws: without it, the write finds out that there is none. */
  async giveUp(): Promise<void> {
    this.#isThere = false;
    await rm(this.#path, { force: true }).catch(() => {});
  }

  /** Takes the space, again, where others do not need it more. Never throws. */
  async fill(): Promise<void> {
    if (this.#isThere) return;
    if (!hasFreeSpace(this.#directory, REMOVAL_SPACE_BYTES + RESERVE_BYTES)) return;
    try {
      // Random bytes, since some file systems compress others.
      await writeFile(this.#path, randomBytes(RESERVE_BYTES), { mode: FILE_MODE });
      this.#isThere = true;
    } catch {
      await this.giveUp();
    }
  }
}
