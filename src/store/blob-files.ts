// Named blobs as files: written under a temporary name, fsynced, renamed, and the folder fsynced,
// so that a name always stands for a whole blob.

import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { assert } from '../errors.js';
import { translateDiskError } from './disk-errors.js';

const TEMPORARY_SUFFIX = '.unfinished';
/** `<folder>/<file>` of plain characters: nothing that could leave the directory. */
const NAME_PATTERN = /^[A-Za-z0-9_-]+\/[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

export class BlobFiles {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Deletes what an interrupted write left. */
  static async open(directory: string): Promise<BlobFiles> {
    await mkdir(directory, { recursive: true });
    for (const name of await readdir(directory, { recursive: true })) {
      if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(directory, name), { force: true });
    }
    return new BlobFiles(directory);
  }

  async write(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    const path = this.#pathOf(name);
    const temporary = path + TEMPORARY_SUFFIX;
    const folder = dirname(path);
    try {
      if ((await mkdir(folder, { recursive: true })) !== undefined) {
        await syncFolder(this.#directory);
      }
      const file = await open(temporary, 'w');
      try {
        for (const part of parts) await writeFully(file, part);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await syncFolder(folder);
    } catch (error) {
      await rm(temporary, { force: true });
      throw await translateDiskError(error, this.#directory);
    }
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    let file: Awaited<ReturnType<typeof open>>;
    try {
      file = await open(this.#pathOf(name), 'r');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const { size } = await file.stat();
      const bytes = new Uint8Array(new SharedArrayBuffer(size));
      let at = 0;
      while (at < size) {
        const { bytesRead } = await file.read(bytes, at, size - at, at);
        if (bytesRead === 0) break;
        at += bytesRead;
      }
      return bytes.subarray(0, at);
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
  }

  async list(prefix: string): Promise<string[]> {
    const entries = await readdir(this.#directory, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && !entry.name.endsWith(TEMPORARY_SUFFIX))
      .map((entry) => join(entry.parentPath, entry.name).slice(this.#directory.length + 1))
      .filter((name) => name.startsWith(prefix))
      .sort();
  }

  #pathOf(name: string): string {
    assert(NAME_PATTERN.test(name), `a blob's name is folder/file, found ${name}`);
    return join(this.#directory, name);
  }
}

async function writeFully(
  file: Awaited<ReturnType<typeof open>>,
  bytes: Uint8Array,
): Promise<void> {
  let at = 0;
  while (at < bytes.byteLength) {
    const { bytesWritten } = await file.write(bytes, at, bytes.byteLength - at);
    at += bytesWritten;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
