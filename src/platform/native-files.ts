// The native addon for files, which is bound to the version of Node: mappings shared by all threads, fast
// checksums, and holes. Without it files are read into memory, zlib computes their checksums, and files keep the
// space that they took.

import { addonPath, buildCommand, loadAddon } from './native-addon.js';

export interface NativeFiles {
  /**
   * Maps a regular file of this length, which belongs to this user or to root, for reading. It is unmapped
   * when no thread refers to the buffer any more. Throws when it cannot be mapped; the message says why.
   */
  map(path: string, byteLength: number): { buffer: SharedArrayBuffer; index: number };
  /**
   * By the index of a mapping: not 0 after a part of the file could not be read, for example because it was
   * cut. That part then reads as zeros.
   */
  flags(): Int32Array;
  /** zlib's checksum, continued from `crc`. Absent on processors without carry-less multiplication. */
  crc32?(bytes: Uint8Array, crc: number): number;
  /**
   * Gives a range of a file, in bytes, back to the file system: it reads as zeros, and the file keeps its
   * length. Throws where the file system cannot do so. Absent except on Linux.
   */
  makeHole?(descriptor: number, offset: number, byteLength: number): void;
  /**
   * The first offset from this one on that is not in a hole, or null when the rest of the file is one. Where
   * the file system does not know its holes, the offset itself. Absent except on Linux.
   */
  dataFrom?(descriptor: number, offset: number): number | null;
  /**
   * From now on, writes of lmdb that the system cuts short are continued, and its messages about failed ones do
   * not overflow their buffer. lmdb must be loaded. Returns whether this was possible: on Linux.
   */
  completeLmdbWrites(): boolean;
  /**
   * While this holds, what lmdb deletes on this thread stays valid: when it cannot open a file, it deletes an object
   * twice. To be called around the opening, after `completeLmdbWrites`.
   */
  deferLmdbFrees(isDeferred: boolean): void;
}

let loaded: NativeFiles | string | null = null;

/** The addon, loaded once per thread, or why it cannot be used. */
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
