// Files that are kept and read block by block, and their digests. The digest of a file is that of the digests of its blocks, so a reader
// with the list of digests can verify each block alone.

import { createHash, hash } from 'node:crypto';

/**
 * Blocks are fetched, evicted and mapped as a whole. Shared files answer a request for so many bytes not much later than
 * one for a few, and smaller blocks would need more of the mappings that the kernel allows a process.
 */
export const BLOCK_BYTES = 1024 * 1024;

/** The block `first` and those after it. */
export interface BlockRange {
  readonly first: number;
  readonly count: number;
}

/** The bytes of one digest: SHA-256. */
export const DIGEST_BYTES = 32;

/** Returns the digests of the blocks of the concatenated parts, one after another. The last block may be shorter. */
export function blockDigests(parts: readonly Uint8Array[]): Uint8Array {
  const digests: Uint8Array[] = [];
  let block = createHash('sha256');
  let room = BLOCK_BYTES;
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const piece = part.subarray(at, at + room);
      block.update(piece);
      at += piece.length;
      room -= piece.length;
      if (room > 0) continue;
      digests.push(block.digest());
      block = createHash('sha256');
      room = BLOCK_BYTES;
    }
  }
  if (room < BLOCK_BYTES) digests.push(block.digest());
  return Buffer.concat(digests);
}

/** Returns the digest of a file, in hexadecimal digits, from those of its blocks. */
export function digestOfBlocks(digests: Uint8Array): string {
  return hash('sha256', digests, 'hex');
}

/** Returns the length of a block of a file with this length; the last one may be shorter. */
export function bytesOfBlock(byteCount: number, block: number): number {
  return Math.min(BLOCK_BYTES, byteCount - block * BLOCK_BYTES);
}

export function blockCountOf(byteCount: number): number {
  return Math.ceil(byteCount / BLOCK_BYTES);
}
