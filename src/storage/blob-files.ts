// Named blobs as files. Each is written under a temporary name, fsynced and renamed, and its folder is fsynced, so a
// name always refers to a complete blob. A blob may be kept in part (partial-blob.ts).

import { constants, readdirSync, renameSync, rmSync } from 'node:fs';
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
import { dirname, join, relative } from 'node:path';
import { assert, blocksUnavailableError, SagittaError } from '../common/errors.js';
import type { FileMapping } from '../common/types.js';
import {
  CALL_BYTES_MAX,
  type FileParts,
  FOLDER_MODE,
  makeFolder,
  REMOVAL_SPACE_BYTES,
  requireFreeSpace,
  syncFile,
  syncFolder,
  translateDiskError,
  writeSyncedFile,
} from './disk.js';
import { FileMapper, type MappingRule } from './file-mapper.js';
import {
  copyPartialFile,
  type PartialBlob,
  type PartialBlobContent,
  readPartialBlob,
  writePartialFile,
} from './partial-blob.js';
import { PartialFiles, type PartialFilesOptions, type PartialFilesUse } from './partial-files.js';

/** Blob names never end with this suffix. */
const TEMPORARY_SUFFIX = '.unfinished';
/** `<folder>/<file>` in plain characters, so no name can lead outside the directory. */
const NAME_PATTERN = /^[A-Za-z0-9_-]+\/[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** The blob files as they were at one moment, for reading only. */
export interface RetainedFiles {
  pathOf(name: string): string;
  read(name: string): Promise<Uint8Array | undefined>;
  /** Reads a blob that is kept in part, with the blocks that are not; null for any other. */
  readPartial(name: string): Promise<Uint8Array | null>;
}

export interface BlobFilesOptions {
  readonly mapping: MappingRule;
  readonly isNew: boolean;
  /** Where blobs that are kept in part get the rest from; null if there are none. */
  readonly partial: PartialFilesOptions | null;
}

export class BlobFiles {
  /** Whether the directory contained no blobs when it was opened. */
  readonly wasEmpty: boolean;
  readonly #directory: string;
  readonly #mapper: FileMapper | null;
  readonly #partial: PartialFiles | null;
  readonly #writing = new Set<Promise<void>>();
  /** One map for each reader of an older state: the new paths of the files whose names were reused since, by name. */
  readonly #retaining = new Set<Map<string, string>>();
  /** Names of removed blobs whose files are still kept. */
  readonly #retainedNames = new Set<string>();
  readonly #movedPaths = new Set<string>();
  #writeCount = 0;
  /** All blobs found by `open`, valid until the first change or listing. */
  #found: readonly string[] | null;

  private constructor(directory: string, found: string[], options: BlobFilesOptions) {
    this.#directory = directory;
    this.wasEmpty = found.length === 0;
    this.#found = found;
    this.#mapper = FileMapper.create(options.mapping, directory);
    this.#partial = options.partial && new PartialFiles(directory, this.#mapper, options.partial);
  }

  /**
   * Deletes empty folders and the files of interrupted writes, but not in a new store, where they would belong to
   * someone else. Throws `configuration_invalid`.
   */
  static async open(directory: string, options: BlobFilesOptions): Promise<BlobFiles> {
    const { isNew } = options;
    await makeFolder(directory);
    const found: string[] = [];
    for (const folder of await foldersIn(directory)) {
      const path = join(directory, folder);
      // Reading synchronously is fine during a start, and much faster with tens of thousands of folders.
      const names = readdirSync(path);
      const unfinished = isNew ? [] : names.filter((name) => name.endsWith(TEMPORARY_SUFFIX));
      for (const name of unfinished) await rm(join(path, name), { force: true });
      if (unfinished.length === names.length && !isNew) await rmdir(path);
      for (const name of names) if (!unfinished.includes(name)) found.push(`${folder}/${name}`);
    }
    return new BlobFiles(directory, found, options);
  }

  /** Whether blobs can be kept in part. */
  get canPartial(): boolean {
    return this.#partial?.canMap ?? false;
  }

  /** Null if no blobs are kept in part. */
  get partialUse(): PartialFilesUse | null {
    return this.#partial?.use ?? null;
  }

  write(name: string, parts: FileParts): Promise<void> {
    return this.#track(this.#put(name, (path) => writeSyncedFile(path, parts)));
  }

  writePartial(name: string, content: PartialBlobContent): Promise<void> {
    assert(this.canPartial, 'blobs can be kept in part');
    return this.#track(this.#put(name, (path) => writePartialFile(path, content)));
  }

  copy(from: string, to: string): Promise<void> {
    return this.#track(this.#put(to, (path) => copyBlobFile(this.#pathOf(from), path)));
  }

  #track(writing: Promise<void>): Promise<void> {
    this.#writing.add(writing);
    const forget = () => this.#writing.delete(writing);
    writing.then(forget, forget);
    return writing;
  }

  /** `make` must write and sync the whole file. */
  async #put(name: string, make: (path: string) => Promise<void>): Promise<void> {
    const path = this.#pathOf(name);
    this.#found = null;
    // The counter separates concurrent writes of the same name.
    const temporary = `${path}.${++this.#writeCount}${TEMPORARY_SUFFIX}`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
      await make(temporary);
      await requireFreeSpace(this.#directory, REMOVAL_SPACE_BYTES);
      if (this.#retainedNames.has(name)) this.#setAside(name, path);
      await rename(temporary, path);
      await syncFolder(dirname(path));
      // Another write may have made the folder just now without having synced it yet.
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
    return this.#retainedNames.has(name) ? undefined : this.#readFile(path);
  }

  /** Returns undefined if the file does not exist. Throws `data_corrupt` and `collection_unavailable`. */
  async #readFile(path: string): Promise<Uint8Array | undefined> {
    try {
      return await withFile(path, async (file) => {
        const blob = await readPartialBlob(file);
        return blob === null ? readWholeFile(file) : this.#readBlocks(path, file, blob);
      }).catch(undefinedIfMissing);
    } catch (error) {
      if (error instanceof SagittaError && error.code === 'collection_unavailable') throw error;
      throw new SagittaError(
        'data_corrupt',
        `The file ${path} cannot be read: ${(error as Error).message}.`,
        { cause: error },
      );
    }
  }

  #readBlocks(path: string, file: FileHandle, blob: PartialBlob): Promise<Uint8Array> {
    const name = relative(this.#directory, path);
    if (this.#partial === null) throw blocksUnavailableError(name);
    return this.#partial.read(file, blob, name);
  }

  /** Returns null if there is no such blob, or if the blob should be read instead. */
  async map(name: string): Promise<FileMapping | null> {
    const path = this.#pathOf(name);
    if (this.#mapper === null || this.#retainedNames.has(name)) return null;
    const look = async (file: FileHandle) => ({
      byteLength: (await file.stat()).size,
      blob: await readPartialBlob(file),
    });
    const found = await withFile(path, look).catch(undefinedIfMissing);
    if (found === undefined) return null;
    if (found.blob === null) return this.#mapper.map(path, found.byteLength);
    return this.#partial === null ? null : this.#partial.map(path, found.blob);
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    this.#found = null;
    if (this.#retaining.size === 0) await rm(path, { force: true });
    else this.#retainedNames.add(name);
  }

  /**
   * Hides removed blobs from other readers but keeps their files until `work` settles, even if their names are reused.
   */
  async retainWhile<Result>(work: (files: RetainedFiles) => Promise<Result>): Promise<Result> {
    const moved = new Map<string, string>();
    this.#retaining.add(moved);
    const pathOf = (name: string) => moved.get(name) ?? this.#pathOf(name);
    try {
      return await work({
        pathOf,
        read: (name) => this.#readFile(pathOf(name)),
        readPartial: (name) =>
          withFile(pathOf(name), async (file) => {
            const blob = await readPartialBlob(file);
            return blob && this.#readBlocks(pathOf(name), file, blob);
          }),
      });
    } finally {
      this.#retaining.delete(moved);
      // Removal is synchronous so that a new blob under one of these names cannot be removed by mistake.
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
    // With tens of thousands of folders, reading only the matching ones matters.
    const folders =
      slash <= 0
        ? (await foldersIn(this.#directory)).filter((folder) => folder.startsWith(prefix))
        : [prefix.slice(0, slash)];
    return (await namesIn(this.#directory, folders))
      .filter((name) => name.startsWith(prefix) && !name.endsWith(TEMPORARY_SUFFIX))
      .filter((name) => !this.#retainedNames.has(name))
      .sort();
  }

  /** Waits for running writes. No thread waits for a block of a mapped blob any more. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#writing);
    await this.#partial?.close();
  }

  #pathOf(name: string): string {
    assertStoreBlobName(name);
    return join(this.#directory, name);
  }
}

export function assertStoreBlobName(name: string): void {
  assert(
    NAME_PATTERN.test(name) && !name.endsWith(TEMPORARY_SUFFIX),
    `the name of a blob is folder/file, found ${name}`,
  );
}

async function foldersIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** The names of all blobs in a directory, including unfinished ones. Throws errors of the system. */
export async function blobNamesIn(directory: string): Promise<string[]> {
  return namesIn(directory, await foldersIn(directory));
}

async function namesIn(directory: string, folders: readonly string[]): Promise<string[]> {
  const names: string[] = [];
  for (const folder of folders) {
    const files = await filesIn(join(directory, folder));
    names.push(...files.map((file) => `${folder}/${file}`));
  }
  return names;
}

/** Returns nothing for a missing folder, or for a file. */
async function filesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}

/** Blobs are immutable, so two names may share one file, unless each name has a cache of its own in it. */
async function copyBlobFile(from: string, to: string): Promise<void> {
  const isPartial = await withFile(from, async (file) => {
    const blob = await readPartialBlob(file);
    if (blob !== null) await copyPartialFile(file, blob, to);
    return blob !== null;
  });
  if (!isPartial) await linkOrCopy(from, to);
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch {
    // The file system has no links, or the file has too many. If there is a real problem, the copy reports it.
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await syncFile(to);
  }
}

export async function withFile<Result>(
  path: string,
  use: (file: FileHandle) => Promise<Result>,
): Promise<Result> {
  const file = await open(path, 'r');
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** Reads the whole file into one SharedArrayBuffer; the result is shorter if the file was truncated meanwhile. */
export async function readWholeFile(file: FileHandle): Promise<Uint8Array> {
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

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}
