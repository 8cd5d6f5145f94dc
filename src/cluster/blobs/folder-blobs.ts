// Blobs in a folder that all machines have mounted.

import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder, syncFolder, translateDiskError, writeSyncedFile } from '../../storage/disk.js';
import { assertBlobName, type Blobs, type ByteRange, requireLength } from './blobs.js';

/** Names of blobs contain no tilde. */
const TEMPORARY_SUFFIX = '~';

export class FolderBlobs implements Blobs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(name: string, parts: readonly Uint8Array[], signal?: AbortSignal): Promise<void> {
    const path = this.#pathOf(name);
    // Another machine may write the same blob.
    const temporary = `${path}.${randomUUID()}${TEMPORARY_SUFFIX}`;
    try {
      await makeFolder(dirname(path));
      await writeSyncedFile(temporary, untilAborted(parts, signal));
      await rename(temporary, path);
      await syncFolder(dirname(path));
    } catch (error) {
      await rm(temporary, { force: true });
      throw translateDiskError(error);
    }
  }

  async get(name: string, range?: ByteRange): Promise<Uint8Array | undefined> {
    const file = await open(this.#pathOf(name), 'r').catch(ignoreAbsence);
    if (file === undefined) return undefined;
    try {
      if (range === undefined) return await file.readFile();
      const bytes = new Uint8Array(range.to - range.from);
      let length = 0;
      while (length < bytes.length) {
        const at = range.from + length;
        const { bytesRead } = await file.read(bytes, length, bytes.length - length, at);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      requireLength(name, bytes.subarray(0, length), range);
      return bytes;
    } finally {
      await file.close();
    }
  }

  async *list(prefix: string): AsyncIterable<string> {
    await mkdir(this.#folder, { recursive: true });
    // Reads only the folder of the prefix, since others may hold thousands of files.
    const folder = join(this.#folder, prefix.slice(0, prefix.lastIndexOf('/') + 1));
    const entries =
      (await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreAbsence)) ?? [];
    const names = entries
      .filter((entry) => entry.isFile() && !entry.name.endsWith(TEMPORARY_SUFFIX))
      .map((entry) => join(entry.parentPath, entry.name).slice(join(this.#folder, '/').length))
      .filter((name) => name.startsWith(prefix));
    yield* names.sort();
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    await rm(path, { force: true });
    await syncFolder(dirname(path)).catch(ignoreAbsence);
  }

  #pathOf(name: string): string {
    assertBlobName(name);
    return join(this.#folder, name);
  }
}

function* untilAborted(
  parts: readonly Uint8Array[],
  signal: AbortSignal | undefined,
): Iterable<Uint8Array> {
  for (const part of parts) {
    signal?.throwIfAborted();
    yield part;
  }
}

function ignoreAbsence(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
