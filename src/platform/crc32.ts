// The CRC-32 of zlib, by the native addon where that is faster.

import { crc32 } from 'node:zlib';
import { loadNativeFiles } from './native-files.js';

/** zlib's lengths have 32 bits. */
const CHUNK_BYTES = 2 ** 30;
/** From here on loading the addon and calling it pays. */
const NATIVE_BYTES_MIN = 64 * 1024;

/** The CRC-32 of the bytes, continuing from `crc`, that of the bytes before them. */
export function crcOf(bytes: Uint8Array, crc = 0): number {
  if (bytes.length >= NATIVE_BYTES_MIN) {
    const native = loadNativeFiles();
    if (typeof native === 'object' && native.crc32 !== undefined) return native.crc32(bytes, crc);
  }
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    crc = crc32(bytes.subarray(start, start + CHUNK_BYTES), crc);
  }
  return crc;
}
