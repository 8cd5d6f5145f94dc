// The native addon for files, which is specific to the version of Node: file mappings shared by all threads, and fast
// checksums. Without it, files are read into memory, and zlib computes checksums.

import { addonPath, buildCommand, loadAddon } from './native-addon.js';

export interface NativeFiles {
  /**
   * Maps a regular file of this length, owned by this user or root, for reading. It is unmapped when no thread refers
   * to the buffer anymore. Throws if the file cannot be mapped, with the reason as the message.
   */
  map(path: string, byteLength: number): { buffer: SharedArrayBuffer; index: number };
  /**
   * Flags by mapping index: nonzero once a part of the file could not be read, for example because the file was
   * truncated. That part then reads as zeros.
   */
  flags(): Int32Array;
  /** zlib's checksum, continued from `crc`. Absent on processors without carry-less multiplication. */
  crc32?(bytes: Uint8Array, crc: number): number;
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
