// The file of a blob of which only some blocks are on this disk. It is sparse: kept blocks have the offsets that they
// have in the blob, and the others are holes, where the cache puts what it fetched. A trailer in the block after the
// last one describes the blob, so that a file is partial if and only if it ends with a trailer, and appears and
// disappears together with its description.

import { type FileHandle, open } from 'node:fs/promises';
import { assert, SagittaError } from '../common/errors.js';
import type { KeptParts } from '../common/types.js';
import { BLOCK_BYTES, type BlockRange, blockCountOf, bytesOfBlock } from '../platform/blocks.js';
import { checksumText, crcOf } from '../platform/crc32.js';
import { FILE_MODE, writeParts } from './disk.js';

/** What a trailer says. */
export interface PartialBlob {
  /** The length of the blob. */
  readonly byteLength: number;
  /** Names the blob for the source of its blocks. */
  readonly source: string;
  /** Ascending, with gaps between them. */
  readonly kept: readonly BlockRange[];
  /** Of the kept blocks, in sequence. */
  readonly checksum: string;
}

/** A blob to be written in part. */
export interface PartialBlobContent extends Pick<PartialBlob, 'byteLength' | 'source' | 'kept'> {
  /** Returns all bytes of a kept block. */
  readonly read: (block: number) => Promise<Uint8Array>;
}

/** The end of a trailer: length and CRC-32 of the text before it, and the magic. No other blob ends like this. */
const MAGIC = Buffer.from('SGTPART1');
const END_BYTES = 8 + MAGIC.byteLength;
const TEXT_BYTES_MAX = BLOCK_BYTES - END_BYTES;

export function* blocksIn(ranges: readonly BlockRange[]): Iterable<number> {
  for (const { first, count } of ranges) {
    for (let block = first; block < first + count; block++) yield block;
  }
}

/** The blocks that are not kept. */
export function absentRanges({
  byteLength,
  kept,
}: Pick<PartialBlob, 'byteLength' | 'kept'>): BlockRange[] {
  const absent: BlockRange[] = [];
  let next = 0;
  for (const { first, count } of [...kept, { first: blockCountOf(byteLength), count: 0 }]) {
    if (first > next) absent.push({ first: next, count: first - next });
    next = first + count;
  }
  return absent;
}

export function keptPartsOf({ byteLength, kept, checksum }: PartialBlob): KeptParts {
  const ranges = kept.map(({ first, count }) => ({
    begin: first * BLOCK_BYTES,
    end: Math.min((first + count) * BLOCK_BYTES, byteLength),
  }));
  return { ranges, checksum };
}

/** Writes and syncs a file with the kept blocks. */
export async function writePartialFile(path: string, content: PartialBlobContent): Promise<void> {
  const { byteLength, source, read } = content;
  assert(byteLength > 0, 'a partial blob is not empty');
  const kept = joined(content.kept, blockCountOf(byteLength));
  const file = await open(path, 'w', FILE_MODE);
  try {
    let crc = 0;
    for (const block of blocksIn(kept)) {
      const bytes = await read(block);
      const expected = bytesOfBlock(byteLength, block);
      assert(bytes.byteLength === expected, `block ${block} has ${expected} bytes`);
      crc = crcOf(bytes, crc);
      await writeParts(file.fd, [bytes], block * BLOCK_BYTES);
    }
    const trailer = trailerOf({ byteLength, source, kept, checksum: checksumText(crc) });
    await writeParts(file.fd, [trailer], blockCountOf(byteLength) * BLOCK_BYTES);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Copies and syncs a partial file without the blocks that its cache put there. */
export async function copyPartialFile(
  file: FileHandle,
  blob: PartialBlob,
  to: string,
): Promise<void> {
  const read = (block: number) => readKept(file, blob, block);
  await writePartialFile(to, { ...blob, read });
}

/** Returns null if the file is not partial. Throws `data_corrupt`, and errors of the system. */
export async function readPartialBlob(file: FileHandle): Promise<PartialBlob | null> {
  const { size } = await file.stat();
  if (size < END_BYTES) return null;
  const end = Buffer.alloc(END_BYTES);
  await readFully(file, end, size - END_BYTES);
  if (!end.subarray(8).equals(MAGIC)) return null;
  const length = end.readUInt32LE(0);
  const start = size - END_BYTES - length;
  if (length > TEXT_BYTES_MAX || start < 0) throw damagedTrailer();
  const text = Buffer.alloc(length);
  await readFully(file, text, start);
  if (crcOf(text) !== end.readUInt32LE(4)) throw damagedTrailer();
  const blob = JSON.parse(text.toString()) as PartialBlob;
  if (start !== blockCountOf(blob.byteLength) * BLOCK_BYTES) throw damagedTrailer();
  return blob;
}

/**
 * Reads the whole blob into one SharedArrayBuffer. `fetch` returns the blocks that are not kept; without it they are
 * zeros.
 */
export async function readPartialFile(
  file: FileHandle,
  blob: PartialBlob,
  fetch: ((block: number) => Promise<Uint8Array>) | null,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(new SharedArrayBuffer(blob.byteLength));
  const partOf = (block: number) => {
    const offset = block * BLOCK_BYTES;
    return bytes.subarray(offset, offset + bytesOfBlock(blob.byteLength, block));
  };
  for (const block of blocksIn(blob.kept)) {
    await readFully(file, partOf(block), block * BLOCK_BYTES);
  }
  if (fetch === null) return bytes;
  const left = blocksIn(absentRanges(blob))[Symbol.iterator]();
  const fetchNext = async () => {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      partOf(next.value).set(await fetch(next.value));
    }
  };
  await Promise.all(Array.from({ length: FETCH_COUNT_MAX }, fetchNext));
  return bytes;
}

/** Blocks that are fetched at the same time: enough to keep a connection busy during the round trips. */
export const FETCH_COUNT_MAX = 8;

/** Throws `data_corrupt` if the file ends before. */
async function readKept(
  file: FileHandle,
  { byteLength }: PartialBlob,
  block: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(bytesOfBlock(byteLength, block));
  await readFully(file, bytes, block * BLOCK_BYTES);
  return bytes;
}

async function readFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let at = 0;
  while (at < bytes.byteLength) {
    const { bytesRead } = await file.read(bytes, at, bytes.byteLength - at, position + at);
    if (bytesRead === 0) throw new SagittaError('data_corrupt', 'The file was cut.');
    at += bytesRead;
  }
}

function trailerOf(blob: PartialBlob): Buffer {
  const text = Buffer.from(JSON.stringify(blob));
  assert(text.byteLength <= TEXT_BYTES_MAX, 'the description of a partial blob fits into a block');
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(text.byteLength, 0);
  end.writeUInt32LE(crcOf(text), 4);
  MAGIC.copy(end, 8);
  return Buffer.concat([text, end]);
}

/** Checks the ranges and joins neighbours. */
function joined(ranges: readonly BlockRange[], blockCount: number): BlockRange[] {
  const result: { first: number; count: number }[] = [];
  let next = 0;
  for (const { first, count } of ranges) {
    assert(first >= next && count > 0, 'kept blocks ascend');
    const last = result.at(-1);
    if (last !== undefined && first === next) last.count += count;
    else result.push({ first, count });
    next = first + count;
  }
  assert(next <= blockCount, 'kept blocks are those of the blob');
  return result;
}

function damagedTrailer(): SagittaError {
  return new SagittaError('data_corrupt', 'The description of its kept blocks is damaged.');
}
