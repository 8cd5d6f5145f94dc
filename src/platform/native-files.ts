// The native addon for files, which is specific to the version of Node: file mappings shared by all threads, of which
// blocks may be fetched when they are read, and fast checksums. Without it, files are read into memory, and zlib computes
// checksums.

import { addonPath, buildCommand, loadAddon } from './native-addon.js';

export interface NativeFiles {
  /**
   * Maps a regular file of this length, owned by this user or root, for reading. It is unmapped when no thread refers
   * to the buffer anymore. Throws if the file cannot be mapped, with the reason as the message.
   */
  map(path: string, byteLength: number): { buffer: SharedArrayBuffer; index: number };
  /**
   * Flags by mapping index: 1 once a page of the file could not be read, for example because the file was truncated,
   * `UNAVAILABLE_FLAG` once a block could not be fetched. That part then reads as zeros.
   */
  flags(): Int32Array;
  /** zlib's checksum, continued from `crc`. Absent on processors without carry-less multiplication. */
  crc32?(bytes: Uint8Array, crc: number): number;
}

export const UNAVAILABLE_FLAG = 2;

/** The block of a request that says that its mapping has ended. */
export const UNMAPPED_REQUEST = 0xffff_ffff;
/** A request consists of three 32-bit numbers: index and generation of the mapping, and the block. */
export const REQUEST_BYTES = 12;

/**
 * Mappings of files of which some blocks are not on this disk; see kernels/files/partial_files.h. Blocks are fetched by
 * one thread for each queue. Index and generation name a mapping; calls for one that has ended do nothing.
 */
export interface NativeBlocks {
  /** The descriptor is the end of the pipe from which requests are read; the caller closes it. */
  openQueue(): { queue: number; descriptor: number };
  /** Closes the queue when the calling thread ends, however that happens. */
  serveQueue(queue: number): void;
  /** Flags all mappings of the queue as unavailable. No thread waits for a block of them from then on. */
  closeQueue(queue: number): void;
  /**
   * Maps a file of exactly `byteLength` bytes. `kept` has the first block and the count of each run of blocks that are in
   * the file. The descriptor is duplicated.
   */
  mapPartial(
    descriptor: number,
    byteLength: number,
    blockBytes: number,
    kept: Uint32Array,
    queue: number,
  ): { buffer: SharedArrayBuffer; index: number; generation: number };
  /** Maps a block that was written to the file. False if as many blocks as the process may have are mapped. */
  mapBlock(index: number, generation: number, block: number): boolean;
  /** Unmaps a block of the file, which is mapped again when it is read. */
  restBlock(index: number, generation: number, block: number): void;
  /** Makes a block absent; false if it was read since it rests. */
  dropBlock(index: number, generation: number, block: number): boolean;
  /** Flags the mapping as unavailable and ends all waiting for its blocks. */
  failMapping(index: number, generation: number): void;
  /** Frees the space of a part of a file; false if the file system cannot. */
  punch(descriptor: number, offset: number, byteLength: number): boolean;
}

/** Null where the system has no mappings of this kind. */
export function blocksOf(native: NativeFiles): NativeBlocks | null {
  return 'mapPartial' in native ? (native as NativeFiles & NativeBlocks) : null;
}

let loaded: NativeFiles | string | null = null;

/** Returns the addon, loaded once per thread, or the reason why it cannot be used. */
export function loadNativeFiles(): NativeFiles | string {
  try {
    loaded ??= loadAddon<NativeFiles>(
      addonPath('sagitta-files.node'),
      `the addon for files is not built; run ${buildCommand('files')}, which needs a C++ compiler and the headers of this Node`,
    );
  } catch (error) {
    loaded = error instanceof Error ? error.message : String(error);
  }
  return loaded;
}
