// Checksums of what is on disk: they find damage, not forgery. CRC-32 runs at several times the
// speed of a disk; SHA-256, at 2 GB/s a core, would be what start-up waits for.

import { crc32 } from 'node:zlib';
import { corrupt } from '../formats/arrow/arrow-errors.js';

/** zlib counts in 32 bits. */
const CHUNK_BYTES = 2 ** 30;

/** `crc`: of what stands before the bytes. */
export function crcOf(bytes: Uint8Array, crc = 0): number {
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    crc = crc32(bytes.subarray(start, start + CHUNK_BYTES), crc);
  }
  return crc;
}

/** Of all parts, one behind the other: `crc32:` and eight hexadecimal digits. */
export function checksumOf(parts: readonly Uint8Array[]): string {
  const crc = parts.reduce((before, part) => crcOf(part, before), 0);
  return `crc32:${crc.toString(16).padStart(8, '0')}`;
}

/** Throws `data_corrupt` when the bytes are not those that the checksum was taken of. */
export function verifyChecksum(bytes: Uint8Array, expected: string): void {
  const found = checksumOf([bytes]);
  if (found !== expected) {
    throw corrupt(`the checksum ${found} over ${bytes.length} bytes, expected ${expected}`);
  }
}
