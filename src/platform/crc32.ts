// CRC-32 as in zlib, computed by the native addon where that is faster.

import * as zlib from 'node:zlib';
import { loadNativeFiles } from './native-files.js';

/** zlib's lengths have 32 bits. */
const CHUNK_BYTES = 2 ** 30;
/** For fewer bytes, loading and calling the addon does not pay off. */
const NATIVE_BYTES_MIN = 64 * 1024;

/** Looked up on first use: zlib loads late in the bundled program, where each access to it takes a microsecond. */
let crc32: typeof zlib.crc32 | undefined;

/** The checksum that is stored with files, of the concatenated parts: `crc32:` and eight hexadecimal digits. */
export function checksumOf(parts: Iterable<Uint8Array>): string {
  let crc = 0;
  for (const part of parts) crc = crcOf(part, crc);
  return checksumText(crc);
}

export function checksumText(crc: number): string {
  return `crc32:${crc.toString(16).padStart(8, '0')}`;
}

/** The CRC-32 of the bytes, continued from the CRC of the bytes before them. */
export function crcOf(bytes: Uint8Array, crc = 0): number {
  if (bytes.length >= NATIVE_BYTES_MIN) {
    const native = loadNativeFiles();
    if (typeof native === 'object' && native.crc32 !== undefined) return native.crc32(bytes, crc);
  }
  crc32 ??= zlib.crc32;
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    crc = crc32(bytes.subarray(start, start + CHUNK_BYTES), crc);
  }
  return crc;
}
