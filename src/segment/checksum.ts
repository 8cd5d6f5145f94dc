// Checksums of files. They detect damage, not forgery. CRC-32 is several times faster than a disk; SHA-256, at
// 2 GB/s per core, would dominate the start-up time.

import { corrupt } from '../formats/arrow/arrow-errors.js';
import { crcOf } from '../platform/crc32.js';

/** Returns the checksum of the concatenated parts: `crc32:` and eight hexadecimal digits. */
export function checksumOf(parts: readonly Uint8Array[]): string {
  const crc = parts.reduce((before, part) => crcOf(part, before), 0);
  return `crc32:${crc.toString(16).padStart(8, '0')}`;
}

/** Throws `data_corrupt` unless the bytes match the expected checksum. */
export function verifyChecksum(bytes: Uint8Array, expected: string): void {
  const found = checksumOf([bytes]);
  if (found !== expected) {
    throw corrupt(`the checksum ${found} over ${bytes.length} bytes`, { expected });
  }
}
