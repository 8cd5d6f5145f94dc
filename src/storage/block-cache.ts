// Fetches the blocks of mapped files that threads wait for, and keeps a bounded number of them in the files. Part of the
// block thread.
//
// Nothing tells which mapped blocks are being read, so a block is evicted in two steps: it is first unmapped but stays in
// the file, where a reader maps it again by itself. Only a block that nobody has read since then is removed.

import { fstatSync, writeSync } from 'node:fs';
import { assert } from '../common/errors.js';
import { BLOCK_BYTES, type BlockRange, blockCountOf, bytesOfBlock } from '../platform/blocks.js';
import type { NativeBlocks } from '../platform/native-files.js';
import { type BlockSource, type FetchOptions, readOnce, retry } from './block-source.js';
import { blocksIn, FETCH_COUNT_MAX } from './partial-blob.js';
import { ReadAhead } from './read-ahead.js';

/** Enough for the fetches that run at the same time, and for the threads that wait for them to read what they fetched. */
export const CACHED_BLOCKS_MIN = 16;
/** Blocks that are fetched ahead of one sequence: more than the blocks that a source returns in one round trip. */
const AHEAD_COUNT_MAX = 16;

/** The share of the blocks that are unmapped: more of them leave readers more time, and make them map more often. */
const RESTING_SHARE = 1 / 4;

/** A mapping as the main thread describes it. */
export interface MappedFile {
  readonly index: number;
  readonly generation: number;
  /** Open for writing. The cache says when it is no longer needed. */
  readonly descriptor: number;
  /** Equal for mappings of the same file. */
  readonly identity: string;
  readonly source: string;
  readonly byteLength: number;
  readonly kept: readonly BlockRange[];
}

/** A file with all its mappings, which share the blocks in it. */
interface CachedFile extends Pick<MappedFile, 'descriptor' | 'identity' | 'source' | 'byteLength'> {
  readonly isKept: Uint8Array;
  readonly mappings: Set<Mapping>;
  readonly entries: Map<number, Entry>;
  readonly fetches: Map<number, Fetch>;
  readonly readAhead: ReadAhead;
  isReleased: boolean;
}

interface Mapping extends Pick<MappedFile, 'index' | 'generation'> {
  readonly file: CachedFile;
  /** Whether it is flagged as unavailable, so that nobody waits for its blocks. */
  isFailed: boolean;
}

/** A block in a file. */
interface Entry {
  readonly file: CachedFile;
  readonly block: number;
}

interface Fetch extends Entry {
  /** Mappings whose readers wait. */
  readonly waiting: Set<Mapping>;
  /** When the first of them began to wait; null if the block is fetched ahead. */
  sinceMs: number | null;
  /** Whether reading the block must raise a request, because it is the marker of a sequence. */
  isMarker: boolean;
  isStarted: boolean;
}

/** After the deadlines a mapping whose readers wait is given up. */
export interface BlockCacheOptions extends FetchOptions {
  readonly native: Omit<NativeBlocks, 'openQueue' | 'serveQueue' | 'closeQueue' | 'mapPartial'>;
  readonly source: BlockSource;
  /** Maximum number of blocks in all files together. */
  readonly blockCountMax: number;
  readonly onReleased: (descriptor: number) => void;
  readonly onUnavailable: (source: string, error: unknown) => void;
  /** Receives the number of blocks in all files together after it has changed. */
  readonly onCached: (blockCount: number) => void;
}

export class BlockCache {
  readonly #options: BlockCacheOptions;
  readonly #native: BlockCacheOptions['native'];
  readonly #files = new Map<string, CachedFile>();
  readonly #mappings = new Map<string, Mapping>();
  /** Blocks that were fetched or read lately, those longest in it first. Those fetched ahead are mapped when they are read. */
  readonly #recent = new Set<Entry>();
  readonly #recentMax: number;
  /** Blocks that were unmapped; some were read since then. */
  readonly #resting = new Set<Entry>();
  #demanded: Fetch[] = [];
  #ahead: Fetch[] = [];
  #activeCount = 0;
  /** The number of blocks that `onCached` received last. */
  #reportedCount = 0;

  constructor(options: BlockCacheOptions) {
    assert(options.blockCountMax >= CACHED_BLOCKS_MIN, 'the cache has room for what is fetched');
    this.#options = options;
    this.#native = options.native;
    this.#recentMax = Math.floor(options.blockCountMax * (1 - RESTING_SHARE));
  }

  add(mapped: MappedFile): void {
    const { index, generation, identity, descriptor } = mapped;
    let file = this.#files.get(identity);
    if (file === undefined) {
      file = this.#newFile(mapped);
      this.#files.set(identity, file);
    } else this.#options.onReleased(descriptor);
    const mapping = { index, generation, file, isFailed: false };
    file.mappings.add(mapping);
    this.#mappings.set(nameOf(mapping), mapping);
  }

  #newFile(mapped: MappedFile): CachedFile {
    const { descriptor, identity, source, byteLength, kept } = mapped;
    const isKept = new Uint8Array(blockCountOf(byteLength));
    for (const block of blocksIn(kept)) isKept[block] = 1;
    const windowMax = Math.min(AHEAD_COUNT_MAX, this.#options.blockCountMax >> 2);
    return {
      ...{ descriptor, identity, source, byteLength, isKept },
      mappings: new Set(),
      entries: new Map(),
      fetches: new Map(),
      readAhead: new ReadAhead(windowMax),
      isReleased: false,
    };
  }

  /** The mapping has ended. */
  remove(index: number, generation: number): void {
    const mapping = this.#mappings.get(nameOf({ index, generation }));
    if (mapping === undefined) return;
    const { file } = mapping;
    this.#mappings.delete(nameOf(mapping));
    file.mappings.delete(mapping);
    for (const { waiting } of file.fetches.values()) waiting.delete(mapping);
    if (file.mappings.size > 0) return;
    file.isReleased = true;
    this.#files.delete(file.identity);
    const isRemoved = fstatSync(file.descriptor).nlink === 0;
    for (const entry of file.entries.values()) {
      this.#recent.delete(entry);
      this.#resting.delete(entry);
      if (!isRemoved) this.#punch(entry);
    }
    this.#reportCached();
    this.#options.onReleased(file.descriptor);
  }

  /** A thread waits for a block. */
  request(index: number, generation: number, block: number): void {
    const mapping = this.#mappings.get(nameOf({ index, generation }));
    if (mapping === undefined || mapping.isFailed) return;
    const { file } = mapping;
    const entry = file.entries.get(block);
    if (entry !== undefined) this.#show(entry, mapping);
    else this.#demand({ file, block }, mapping);
    this.#fetchAhead(file, block);
    this.#startFetches();
  }

  #fetchAhead(file: CachedFile, block: number): void {
    const ahead = file.readAhead.next(block);
    if (ahead === null) return;
    const { from, marker } = ahead;
    const to = Math.min(ahead.to, file.isKept.length);
    for (let next = from; next < to; next++) {
      const isThere = file.isKept[next] === 1 || file.entries.has(next) || file.fetches.has(next);
      if (!isThere) this.#ahead.push(this.#newFetch(file, next, null));
    }
    const fetch = file.fetches.get(marker);
    if (fetch !== undefined) fetch.isMarker = true;
    else if (file.entries.has(marker)) this.#drop({ file, block: marker });
  }

  #newFetch(file: CachedFile, block: number, sinceMs: number | null): Fetch {
    const waiting = new Set<Mapping>();
    const fetch: Fetch = { file, block, waiting, sinceMs, isMarker: false, isStarted: false };
    file.fetches.set(block, fetch);
    return fetch;
  }

  #demand({ file, block }: Entry, mapping: Mapping): void {
    const sinceMs = performance.now();
    let fetch = file.fetches.get(block);
    if (fetch === undefined) {
      fetch = this.#newFetch(file, block, sinceMs);
      this.#demanded.push(fetch);
    } else if (fetch.sinceMs === null && !fetch.isStarted) {
      fetch.sinceMs = sinceMs;
      this.#demanded.push(fetch);
    }
    fetch.waiting.add(mapping);
  }

  #startFetches(): void {
    while (this.#activeCount < FETCH_COUNT_MAX) {
      const fetch = this.#demanded.shift() ?? this.#ahead.shift();
      if (fetch === undefined) return;
      // It was started from the other list, or its readers wait no longer.
      const { isStarted, sinceMs, waiting, file, block } = fetch;
      if (isStarted || file.isReleased) continue;
      if (sinceMs === null || waiting.size > 0) void this.#run(fetch);
      else file.fetches.delete(block);
    }
  }

  async #run(fetch: Fetch): Promise<void> {
    const { file, block, sinceMs } = fetch;
    const { source, deadlines } = this.#options;
    const wanted = { name: file.source, block, byteLength: bytesOfBlock(file.byteLength, block) };
    fetch.isStarted = true;
    this.#activeCount++;
    const attempt = async () => {
      const bytes = await readOnce(source, wanted, this.#options);
      if (!file.isReleased) this.#store(fetch, bytes);
    };
    try {
      await (sinceMs === null ? attempt() : retry(attempt, deadlines, sinceMs));
      file.fetches.delete(block);
    } catch (error) {
      file.fetches.delete(block);
      this.#fail(fetch, error);
    }
    this.#activeCount--;
    this.#reportCached();
    this.#startFetches();
  }

  get #cachedCount(): number {
    return this.#recent.size + this.#resting.size;
  }

  #reportCached(): void {
    if (this.#cachedCount === this.#reportedCount) return;
    this.#reportedCount = this.#cachedCount;
    this.#options.onCached(this.#reportedCount);
  }

  #fail(failed: Fetch, error: unknown): void {
    const { file, waiting, sinceMs } = failed;
    if (sinceMs === null) {
      // Those who have begun to wait meanwhile get all the retries.
      for (const mapping of waiting) this.#demand(failed, mapping);
      return;
    }
    if (waiting.size === 0) return;
    for (const mapping of waiting) {
      this.#failMapping(mapping);
      for (const other of file.fetches.values()) other.waiting.delete(mapping);
    }
    this.#options.onUnavailable(file.source, error);
  }

  /** Writes a block to its file and shows it to those who wait. Throws errors of the system. */
  #store(fetch: Fetch, bytes: Uint8Array): void {
    const { file, block, waiting, isMarker } = fetch;
    let entry = file.entries.get(block);
    if (entry === undefined) {
      entry = { file, block };
      while (this.#cachedCount >= this.#options.blockCountMax) this.#evict();
      this.#write(entry, bytes);
      file.entries.set(block, entry);
      this.#addRecent(entry);
      if (!isMarker) for (const mapping of file.mappings) this.#rest(mapping, block);
    }
    for (const mapping of waiting) this.#show(entry, mapping);
    waiting.clear();
  }

  #write(entry: Entry, bytes: Uint8Array): void {
    const { descriptor } = entry.file;
    const offset = entry.block * BLOCK_BYTES;
    try {
      for (let at = 0; at < bytes.byteLength; ) {
        at += writeSync(descriptor, bytes, at, bytes.byteLength - at, offset + at);
      }
    } catch (error) {
      this.#punch(entry);
      // The disk may be full of what is cached here.
      for (let i = 0; i < FETCH_COUNT_MAX && this.#cachedCount > 0; i++) this.#evict();
      throw error;
    }
  }

  #show(entry: Entry, mapping: Mapping): void {
    const { index, generation } = mapping;
    this.#resting.delete(entry);
    this.#recent.delete(entry);
    if (!this.#native.mapBlock(index, generation, entry.block)) {
      this.#restMany();
      if (!this.#native.mapBlock(index, generation, entry.block)) {
        // Other stores of the process have mapped too many.
        this.#failMapping(mapping);
      }
    }
    this.#addRecent(entry);
  }

  #addRecent(entry: Entry): void {
    this.#recent.add(entry);
    if (this.#recent.size > this.#recentMax) this.#restOldest();
  }

  #failMapping(mapping: Mapping): void {
    mapping.isFailed = true;
    this.#native.failMapping(mapping.index, mapping.generation);
  }

  /** Unmaps all blocks but the half that was mapped last. */
  #restMany(): void {
    for (const { file, block } of this.#resting) {
      for (const mapping of file.mappings) this.#rest(mapping, block);
    }
    for (let i = this.#recent.size >> 1; i > 0; i--) this.#restOldest();
  }

  #restOldest(): void {
    const [entry] = this.#recent;
    if (entry === undefined) return;
    for (const mapping of entry.file.mappings) this.#rest(mapping, entry.block);
    this.#recent.delete(entry);
    this.#resting.add(entry);
  }

  #rest({ index, generation }: Mapping, block: number): void {
    this.#native.restBlock(index, generation, block);
  }

  /** Removes the block that has rested longest without having been read. */
  #evict(): void {
    for (;;) {
      if (this.#resting.size === 0) this.#restOldest();
      const [entry] = this.#resting;
      assert(entry !== undefined, 'there is a block to evict');
      this.#resting.delete(entry);
      if (this.#drop(entry)) {
        entry.file.entries.delete(entry.block);
        this.#punch(entry);
        return;
      }
      this.#addRecent(entry);
    }
  }

  /** Makes a block absent in all mappings; returns false if one has it mapped. */
  #drop({ file, block }: Entry): boolean {
    let isAbsent = true;
    for (const { index, generation } of file.mappings) {
      if (!this.#native.dropBlock(index, generation, block)) isAbsent = false;
    }
    return isAbsent;
  }

  #punch({ file, block }: Entry): void {
    const byteLength = bytesOfBlock(file.byteLength, block);
    this.#native.punch(file.descriptor, block * BLOCK_BYTES, byteLength);
  }
}

function nameOf({ index, generation }: Pick<MappedFile, 'index' | 'generation'>): string {
  return `${index}/${generation}`;
}
