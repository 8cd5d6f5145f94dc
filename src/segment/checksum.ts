// Checksums of files and records, against damage, not forgery. CRC-32 is several times faster than a
// disk; SHA-256, at 2 GB/s per core, would dominate the start-up time.

import { crc32 } from 'node:zlib';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import { loadNativeFiles } from '../platform/native-files.js';

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

/** The checksum of the concatenated parts: `crc32:` and eight hexadecimal digits. */
export function checksumOf(parts: readonly Uint8Array[]): string {
  const crc = parts.reduce((before, part) => crcOf(part, before), 0);
  return `crc32:${crc.toString(16).padStart(8, '0')}`;
}

/** Throws `data_corrupt` unless the bytes have the expected checksum. */
export function verifyChecksum(bytes: Uint8Array, expected: string): void {
  const found = checksumOf([bytes]);
  if (found !== expected) {
    throw corrupt(`the checksum ${found} over ${bytes.length} bytes, expected ${expected}`);
  }
}
