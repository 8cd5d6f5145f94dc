// Named blobs as files: written under a temporary name, fsynced, renamed, and the folder fsynced, so
// that a name always refers to a complete blob.

import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import {
  copyFile,
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  rmdir,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { assert, SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import {
  CALL_BYTES_MAX,
  FOLDER_MODE,
  makeFolder,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFolder,
  translateDiskError,
  writeSyncedFile,
} from './disk.js';
import { FileMapper, type MappingRule } from './file-mapper.js';

/**
 * Files of at most so many bytes are read at once: four trips to a thread take longer, and a start reads the files of ten
 * thousand small collections.
 */
const SMALL_BYTES_MAX = 64 * 1024;
/** No blob has a name that ends like this. */
const TEMPORARY_SUFFIX = '.unfinished';
/** `<folder>/<file>` in plain characters, so that no name leads outside the directory. */
const NAME_PATTERN = /^[A-Za-z0-9_-]+\/[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** The files of blobs as they were at a moment, to be copied and not changed. */
export interface RetainedFiles {
  pathOf(name: string): string;
  read(name: string): Promise<Uint8Array | undefined>;
}

export class BlobFiles {
  /** Whether there were no blobs when the directory was opened. */
  readonly wasEmpty: boolean;
  readonly #directory: string;
  readonly #mapper: FileMapper | null;
  readonly #writing = new Set<Promise<void>>();
  /** For each that needs files as they were when it began: where those are whose names were used again, by name. */
  readonly #retaining = new Set<Map<string, string>>();
  /** Names that were removed meanwhile, whose files are still there. */
  readonly #retainedNames = new Set<string>();
  readonly #movedPaths = new Set<string>();
  #writeCount = 0;
  /** All blobs, until the first change or list. */
  #found: readonly string[] | null;

  private constructor(directory: string, found: string[], mapper: FileMapper | null) {
    this.#directory = directory;
    this.wasEmpty = found.length === 0;
    this.#found = found;
    this.#mapper = mapper;
  }

  /**
   * Deletes the files of interrupted writes and empty folders, unless the store is new: whatever is there then,
   * others have made. Throws `configuration_invalid`.
   */
  static async open(
    directory: string,
    { mapping, isNew }: { readonly mapping: MappingRule; readonly isNew: boolean },
  ): Promise<BlobFiles> {
    await makeFolder(directory);
    const found: string[] = [];
    for (const folder of await foldersIn(directory)) {
      const path = join(directory, folder);
      // Nothing else is done meanwhile, and there may be tens of thousands of folders.
      const names = readdirSync(path);
      const unfinished = isNew ? [] : names.filter((name) => name.endsWith(TEMPORARY_SUFFIX));
      for (const name of unfinished) await rm(join(path, name), { force: true });
      if (unfinished.length === names.length && !isNew) await rmdir(path);
      for (const name of names) if (!unfinished.includes(name)) found.push(`${folder}/${name}`);
    }
    return new BlobFiles(directory, found, FileMapper.create(mapping, directory));
  }

  write(name: string, parts: Iterable<Uint8Array>): Promise<void> {
    return this.#track(this.#put(name, (path) => writeSyncedFile(path, parts)));
  }

  copy(from: string, to: string): Promise<void> {
    return this.#track(this.#put(to, (path) => linkOrCopy(this.#pathOf(from), path)));
  }

  #track(writing: Promise<void>): Promise<void> {
    this.#writing.add(writing);
    const forget = () => this.#writing.delete(writing);
    writing.then(forget, forget);
    return writing;
  }

  /** `make` makes the whole file and syncs it. */
  async #put(name: string, make: (path: string) => Promise<void>): Promise<void> {
    const path = this.#pathOf(name);
    this.#found = null;
    // The count keeps two writes of one name apart.
    const temporary = `${path}.${++this.#writeCount}${TEMPORARY_SUFFIX}`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
      await make(temporary);
      requireFreeSpace(this.#directory, REMOVAL_SPACE_BYTES);
      if (this.#retainedNames.has(name)) this.#setAside(name, path);
      await rename(temporary, path);
      await syncFolder(dirname(path));
      // Also if another write has just made the folder, which may not be synced yet.
      await syncFolder(this.#directory);
    } catch (error) {
      await rm(temporary, { force: true });
      throw translateDiskError(error);
    }
  }

  #setAside(name: string, path: string): void {
    const aside = `${path}.${++this.#writeCount}${TEMPORARY_SUFFIX}`;
    renameSync(path, aside);
    this.#movedPaths.add(aside);
    this.#retainedNames.delete(name);
    for (const moved of this.#retaining) if (!moved.has(name)) moved.set(name, aside);
  }

  async read(name: string): Promise<Uint8Array | undefined> {
    const path = this.#pathOf(name);
    return this.#retainedNames.has(name) ? undefined : readFileOf(path);
  }

  /** Null when there is no such blob, or when it is to be read. */
  async map(name: string): Promise<FileMapping | null> {
    const path = this.#pathOf(name);
    if (this.#mapper === null || this.#retainedNames.has(name)) return null;
    const size = sizeOf(path);
    return size === undefined ? null : this.#mapper.map(path, size);
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    this.#found = null;
    if (this.#retaining.size === 0) await rm(path, { force: true });
    else this.#retainedNames.add(name);
  }

  /**
   * Until `work` settles, removed blobs are invisible to other readers, but their files stay, also when their names
   * are used again.
   */
  async retainWhile<Result>(work: (files: RetainedFiles) => Promise<Result>): Promise<Result> {
    const moved = new Map<string, string>();
    this.#retaining.add(moved);
    const pathOf = (name: string) => moved.get(name) ?? this.#pathOf(name);
    try {
      return await work({ pathOf, read: (name) => readFileOf(pathOf(name)) });
    } finally {
      this.#retaining.delete(moved);
      // At once: what is written under one of the names must not be removed.
      if (this.#retaining.size === 0) {
        const paths = [...this.#retainedNames].map((name) => this.#pathOf(name));
        for (const path of [...paths, ...this.#movedPaths]) rmSync(path, { force: true });
        this.#retainedNames.clear();
        this.#movedPaths.clear();
      }
    }
  }

  async list(prefix: string): Promise<string[]> {
    const found = this.#found;
    this.#found = null;
    if (found !== null) return found.filter((name) => name.startsWith(prefix)).sort();
    const slash = prefix.indexOf('/');
    // There may be tens of thousands of folders: only those that can match are read.
    const folders =
      slash <= 0
        ? (await foldersIn(this.#directory)).filter((folder) => folder.startsWith(prefix))
        : [prefix.slice(0, slash)];
    const names: string[] = [];
    for (const folder of folders) {
      const files = await filesIn(join(this.#directory, folder));
      names.push(...files.map((file) => `${folder}/${file}`));
    }
    return names
      .filter((name) => name.startsWith(prefix) && !name.endsWith(TEMPORARY_SUFFIX))
      .filter((name) => !this.#retainedNames.has(name))
      .sort();
  }

  /** Waits for running writes. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#writing);
  }

  #pathOf(name: string): string {
    assertBlobName(name);
    return join(this.#directory, name);
  }
}

export function assertBlobName(name: string): void {
  assert(
    NAME_PATTERN.test(name) && !name.endsWith(TEMPORARY_SUFFIX),
    `a blob has a name like folder/file, found ${name}`,
  );
}

async function foldersIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Empty for a folder that does not exist, or is a file. */
async function filesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}

/** A blob is never written to, so two names may share one file. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch {
    // Without links on this file system, or with too many of them. The copy reports a real problem.
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    const file = await open(to, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

/** The whole file in one SharedArrayBuffer; fewer bytes if the file was cut meanwhile. */
export async function readWholeBlob(file: FileHandle): Promise<Uint8Array> {
  const { size } = await file.stat();
  const bytes = new Uint8Array(new SharedArrayBuffer(size));
  let at = 0;
  while (at < size) {
    const { bytesRead } = await file.read(bytes, at, Math.min(size - at, CALL_BYTES_MAX), at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes.subarray(0, at);
}

/** Undefined when there is no such file. Throws `data_corrupt`. */
async function readFileOf(path: string): Promise<Uint8Array | undefined> {
  const size = sizeOf(path);
  if (size === undefined) return undefined;
  try {
    if (size <= SMALL_BYTES_MAX) return readSmallFile(path, size);
    const file = await open(path, 'r');
    try {
      return await readWholeBlob(file);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new SagittaError(
      'data_corrupt',
      `The file ${path} cannot be read: ${(error as Error).message}.`,
      { cause: error },
    );
  }
}

/** Undefined when there is no such file. Here and now: to look it up takes less time than to ask a thread to do so. */
function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** Fewer bytes if the file was cut meanwhile. */
function readSmallFile(path: string, size: number): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(size));
  const descriptor = openSync(path, 'r');
  try {
    let at = 0;
    for (let count = -1; at < size && count !== 0; at += count) {
      count = readSync(descriptor, bytes, at, size - at, at);
    }
    return bytes.subarray(0, at);
  } finally {
    closeSync(descriptor);
  }
}
