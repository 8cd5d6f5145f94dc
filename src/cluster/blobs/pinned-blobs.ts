// Blobs that are pinned by the digest in an index. The digests of the blocks follow the bytes of such a blob, so that a
// reader can fetch and verify one block (blocks.ts).

import { SagittaError } from '../../common/errors.js';
import {
  BLOCK_BYTES,
  blockCountOf,
  blockDigests,
  bytesOfBlock,
  DIGEST_BYTES,
  digestOfBlocks,
} from '../../platform/blocks.js';
import type { Blobs } from './blobs.js';

export interface BlobDigest {
  /** The bytes without the digests that follow them. */
  readonly byteCount: number;
  /** See `digestOfBlocks`. */
  readonly digest: string;
}

/** Writes the bytes of the parts, followed by the digests of their blocks. */
export async function putPinned(
  blobs: Blobs,
  name: string,
  parts: readonly Uint8Array[],
  digests = blockDigests(parts),
): Promise<void> {
  await blobs.put(name, [...parts, digests]);
}

/** Throws `data_corrupt` unless the blob exists and has these bytes. */
export async function getPinned(
  blobs: Blobs,
  name: string,
  expected: BlobDigest,
): Promise<Uint8Array> {
  const found = await blobs.get(name);
  if (found === undefined) throw otherBlob(name, expected, 'none');
  const bytes = found.subarray(0, expected.byteCount);
  const digests = blockDigests([bytes]);
  const isSame =
    digestOfBlocks(digests) === expected.digest &&
    Buffer.compare(found.subarray(expected.byteCount), digests) === 0;
  if (!isSame) throw otherBlob(name, expected, `${found.length} other bytes`);
  return bytes;
}

/** Blocks of a blob. */
export interface PinnedBlocks {
  /** Reads one block. Throws `data_corrupt` unless it has the bytes that were written. */
  read(block: number): Promise<Uint8Array>;
  /** Reads all blocks in sequence, several at a time. Throws `data_corrupt`, perhaps after the first ones. */
  readAll(): AsyncIterable<Uint8Array>;
}

/** Blocks that are read together: as many as a service answers at full speed, and few enough to be held in memory. */
const BLOCKS_TOGETHER = 8;

/** Reads the digests of the blocks. Throws `data_corrupt`. */
export async function openPinned(
  blobs: Blobs,
  name: string,
  expected: BlobDigest,
): Promise<PinnedBlocks> {
  const { byteCount } = expected;
  const to = byteCount + DIGEST_BYTES * blockCountOf(byteCount);
  const digests = await blobs.get(name, { from: byteCount, to });
  if (digests === undefined) throw otherBlob(name, expected, 'none');
  if (digestOfBlocks(digests) !== expected.digest) throw otherBlob(name, expected, 'others');
  const read = async (block: number, count: number) => {
    const last = block + count - 1;
    const range = {
      from: block * BLOCK_BYTES,
      to: last * BLOCK_BYTES + bytesOfBlock(byteCount, last),
    };
    const bytes = await blobs.get(name, range);
    const expectedDigests = digests.subarray(block * DIGEST_BYTES, (last + 1) * DIGEST_BYTES);
    const isSame =
      bytes !== undefined && Buffer.compare(blockDigests([bytes]), expectedDigests) === 0;
    if (isSame) return bytes;
    const what = count === 1 ? `block ${block}` : `blocks ${block} to ${last}`;
    throw new SagittaError(
      'data_corrupt',
      `Expected ${what} of the shared file ${name} with the digests that follow its bytes; found ${bytes === undefined ? 'no file' : 'other bytes'}.`,
    );
  };
  return {
    read: (block) => read(block, 1),
    async *readAll() {
      const count = blockCountOf(byteCount);
      for (let block = 0; block < count; block += BLOCKS_TOGETHER) {
        yield await read(block, Math.min(BLOCKS_TOGETHER, count - block));
      }
    },
  };
}

function otherBlob(name: string, { byteCount, digest }: BlobDigest, found: string): SagittaError {
  return new SagittaError(
    'data_corrupt',
    `Expected the shared file ${name} with ${byteCount} bytes, followed by digests of its blocks with the SHA-256 ${digest}; found ${found}.`,
  );
}
