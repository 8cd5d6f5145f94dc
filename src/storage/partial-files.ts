// Maps the files of partial blobs. A thread of its own, started with the first of them, fetches the blocks that are not on
// this disk; see block-thread.ts. Blobs that are read as a whole are fetched by the calling thread.

import { closeSync, constants, fstatSync, openSync, rmSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { blocksUnavailableError } from '../common/errors.js';
import { programFile } from '../common/package-files.js';
import type { FileMapping } from '../common/types.js';
import { BLOCK_BYTES, bytesOfBlock } from '../platform/blocks.js';
import type { NativeBlocks } from '../platform/native-files.js';
import { CACHED_BLOCKS_MIN, type MappedFile } from './block-cache.js';
import {
  type BlockSource,
  type BlockSourceModule,
  type FetchOptions,
  openBlockSource,
  readOnce,
  retry,
} from './block-source.js';
import type { BlockThreadData, BlockThreadReply } from './block-thread.js';
import { FILE_MODE } from './disk.js';
import type { FileMapper } from './file-mapper.js';
import { absentRanges, keptPartsOf, type PartialBlob, readPartialFile } from './partial-blob.js';

export interface PartialFilesOptions extends FetchOptions {
  readonly source: BlockSourceModule;
  /** Disk space for fetched blocks of all files together. */
  readonly cacheBytes: number;
  /** Receives a message for each file whose blocks cannot be fetched. */
  readonly warn: (message: string) => void;
}

/** The disk space of partial files. */
export interface PartialFilesUse {
  /** The kept blocks of mapped files. */
  readonly keptBytes: number;
  /** Fetched blocks, and how many there may be. */
  readonly cachedBytes: number;
  readonly cacheBytesMax: number;
}

interface BlockThread {
  readonly worker: Worker;
  readonly queue: number;
}

export class PartialFiles {
  readonly #options: PartialFilesOptions;
  readonly #mapper: FileMapper | null;
  readonly #native: NativeBlocks | null;
  readonly #blockCountMax: number;
  #cachedBlockCount = 0;
  /** The bytes that each mapped file keeps, by its descriptor, until the thread no longer needs the file. */
  readonly #descriptors = new Map<number, number>();
  #thread: Promise<BlockThread> | null = null;
  #source: Promise<BlockSource> | null = null;
  /** Files from which the blocks that an earlier run fetched were removed, by identity. */
  readonly #cleaned = new Set<string>();

  /** Files of the directory can be mapped if there is a mapper and the file system can free a part of a file. */
  constructor(directory: string, mapper: FileMapper | null, options: PartialFilesOptions) {
    this.#options = options;
    this.#blockCountMax = Math.max(CACHED_BLOCKS_MIN, Math.floor(options.cacheBytes / BLOCK_BYTES));
    this.#mapper = mapper;
    const native = mapper?.blocks ?? null;
    this.#native = native !== null && canPunch(directory, native) ? native : null;
  }

  get canMap(): boolean {
    return this.#native !== null;
  }

  get use(): PartialFilesUse {
    let keptBytes = 0;
    for (const byteCount of this.#descriptors.values()) keptBytes += byteCount;
    return {
      keptBytes,
      cachedBytes: this.#cachedBlockCount * BLOCK_BYTES,
      cacheBytesMax: this.#blockCountMax * BLOCK_BYTES,
    };
  }

  /**
   * Reads a whole blob into shared memory; `name` is for messages. Throws `collection_unavailable`, `data_corrupt`, and
   * errors of the system.
   */
  async read(file: FileHandle, blob: PartialBlob, name: string): Promise<Uint8Array> {
    const { deadlines } = this.#options;
    const fetch = async (block: number) => {
      const byteLength = bytesOfBlock(blob.byteLength, block);
      const wanted = { name: blob.source, block, byteLength };
      try {
        const source = await this.#open();
        return await retry(() => readOnce(source, wanted, this.#options), deadlines);
      } catch (error) {
        throw blocksUnavailableError(name, error);
      }
    };
    return readPartialFile(file, blob, fetch);
  }

  #open(): Promise<BlockSource> {
    this.#source ??= openBlockSource(this.#options.source).catch((error: unknown) => {
      this.#source = null;
      throw error;
    });
    return this.#source;
  }

  /** Returns null if files cannot be mapped. Throws errors of the system, and those of opening the source. */
  async map(path: string, blob: PartialBlob): Promise<FileMapping | null> {
    if (this.#mapper === null || this.#native === null) return null;
    this.#thread ??= this.#start(this.#native).catch((error: unknown) => {
      this.#thread = null;
      throw error;
    });
    const thread = await this.#thread;
    const descriptor = openSync(path, constants.O_RDWR);
    try {
      const { dev, ino, size } = fstatSync(descriptor);
      const identity = `${dev}:${ino}`;
      if (!this.#cleaned.has(identity)) this.#clean(descriptor, blob);
      this.#cleaned.add(identity);
      const { mapping, index, generation } = this.#mapper.mapPartial(
        ...([descriptor, size, blob, thread.queue] as const),
      );
      const { source, byteLength, kept } = blob;
      const mapped: MappedFile = {
        ...{ index, generation, descriptor, identity, source, byteLength, kept },
      };
      this.#descriptors.set(descriptor, keptBytesOf(blob));
      thread.worker.postMessage(mapped);
      return mapping;
    } catch (error) {
      if (!this.#descriptors.has(descriptor)) closeSync(descriptor);
      throw error;
    }
  }

  /** Removes what was fetched in an earlier run: after a crash, the disk may have a part of it. */
  #clean(descriptor: number, blob: PartialBlob): void {
    for (const { first, count } of absentRanges(blob)) {
      this.#native!.punch(descriptor, first * BLOCK_BYTES, count * BLOCK_BYTES);
    }
  }

  async #start(native: NativeBlocks): Promise<BlockThread> {
    const { source, deadlines } = this.#options;
    const { queue, descriptor } = native.openQueue();
    const workerData: BlockThreadData = {
      ...{ source, queue, descriptor, deadlines, blockCountMax: this.#blockCountMax },
    };
    const worker = new Worker(programFile('storage/block-thread.js'), { workerData });
    const starting = new Promise<void>((resolve, reject) => {
      let failure: unknown = new Error('the thread that fetches blocks has ended');
      worker.on('error', (error) => {
        failure = error;
      });
      closeQueueAtExit(native, queue);
      worker.on('exit', () => {
        native.closeQueue(queue);
        openQueues.delete(queue);
        for (const each of this.#descriptors.keys()) closeSync(each);
        this.#descriptors.clear();
        this.#cachedBlockCount = 0;
        this.#thread = null;
        this.#cleaned.clear();
        reject(failure);
      });
      worker.on('message', (reply: BlockThreadReply) => {
        if (reply.kind === 'ready') resolve();
        else this.#receive(reply);
      });
    });
    await starting;
    worker.unref();
    return { worker, queue };
  }

  #receive(reply: Exclude<BlockThreadReply, { readonly kind: 'ready' }>): void {
    switch (reply.kind) {
      case 'released':
        if (this.#descriptors.delete(reply.descriptor)) closeSync(reply.descriptor);
        break;
      case 'unavailable':
        this.#options.warn(`Blocks of ${reply.source} could not be fetched: ${reply.reason}.`);
        break;
      case 'fetched':
        this.#options.onFetched(reply.fetched);
        break;
      case 'cached':
        this.#cachedBlockCount = reply.blockCount;
        break;
    }
  }

  /** Ends all waiting for blocks; mappings are unavailable from then on. */
  async close(): Promise<void> {
    const thread = await this.#thread?.catch(() => null);
    if (thread === null || thread === undefined) return;
    this.#native!.closeQueue(thread.queue);
    await thread.worker.terminate();
  }
}

function keptBytesOf(blob: PartialBlob): number {
  return keptPartsOf(blob).ranges.reduce((sum, { begin, end }) => sum + end - begin, 0);
}

const openQueues = new Set<number>();
let isListening = false;

/** Otherwise the exit of the process would wait for threads that wait for blocks. */
function closeQueueAtExit(native: NativeBlocks, queue: number): void {
  openQueues.add(queue);
  if (isListening) return;
  isListening = true;
  process.once('exit', () => {
    for (const each of openQueues) native.closeQueue(each);
  });
}

/** Whether the file system can free a part of a file. Where that is not known, as on a full disk, it probably can. */
function canPunch(directory: string, native: NativeBlocks): boolean {
  const path = join(directory, PROBE_FILE);
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'w', FILE_MODE);
    return native.punch(descriptor, 0, BLOCK_BYTES);
  } catch {
    return true;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
    rmSync(path, { force: true });
  }
}

const PROBE_FILE = 'blocks.unfinished';
