// Buffers compressed one by one, as record batches carry them: 8 bytes of the uncompressed length
// (-1: stored as it is), then a frame. The lengths are checked against a bound before anything is
// allocated, and a frame that does not give exactly as many bytes is refused.

import { invalidArrow } from './arrow-errors.js';
import type { EncodedPart } from './encoded-batch.js';
import { decodeLz4Frame } from './lz4-frame.js';
import type { BodyShape } from './message.js';
import { decodeZstd, loadZstd } from './zstd.js';

/** A part as it came in, with what its decompression needs on whichever thread that happens. */
export async function encodedPart(shape: BodyShape, body: Uint8Array): Promise<EncodedPart> {
  return shape.codec === 'zstd' ? { shape, body, zstd: await loadZstd() } : { shape, body };
}

const LENGTH_BYTES = 8;
const STORED = -1;

/** The uncompressed length of every buffer. Throws `invalid_arrow` when they exceed the bound. */
export function uncompressedLengths({ shape, body }: EncodedPart, bytesMax: number): Float64Array {
  const { regions, codec } = shape;
  const lengths = new Float64Array(regions.length / 2);
  let total = 0;
  for (let i = 0; i < lengths.length; i++) {
    const length = regions[i * 2 + 1]!;
    lengths[i] = codec === null ? length : lengthOf(body, regions[i * 2]!, length, i);
    total += lengths[i]!;
  }
  if (total > bytesMax) {
    throw invalidArrow(
      `a body of ${total} bytes when decompressed, expected at most ${bytesMax}; send smaller batches`,
    );
  }
  return lengths;
}

function lengthOf(body: Uint8Array, offset: number, length: number, index: number): number {
  if (length === 0) return 0;
  if (length < LENGTH_BYTES) {
    throw invalidArrow(`${length} bytes of compressed buffer ${index}, expected 8 and a frame`);
  }
  const view = new DataView(body.buffer, body.byteOffset + offset, LENGTH_BYTES);
  const uncompressed = view.getInt32(4, true) * 2 ** 32 + view.getUint32(0, true);
  if (uncompressed === STORED) return length - LENGTH_BYTES;
  if (uncompressed < 0) throw invalidArrow(`${uncompressed} bytes in compressed buffer ${index}`);
  return uncompressed;
}

/** Writes the buffer to `target`, which is as long as it is. */
export function decompressInto(part: EncodedPart, index: number, target: Uint8Array): void {
  const { regions, codec } = part.shape;
  const offset = regions[index * 2]!;
  const length = regions[index * 2 + 1]!;
  const bytes = part.body.subarray(offset, offset + length);
  if (codec === null || length === 0) {
    target.set(bytes);
    return;
  }
  const frame = bytes.subarray(LENGTH_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, LENGTH_BYTES);
  if (view.getInt32(4, true) === STORED) {
    target.set(frame);
    return;
  }
  let byteCount: number;
  try {
    byteCount =
      codec === 'zstd' ? decodeZstd(part.zstd!, frame, target) : decodeLz4Frame(frame, target);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidArrow(`buffer ${index}, whose ${codec} frame is damaged (${reason})`, error);
  }
  if (byteCount !== target.length) {
    throw invalidArrow(
      `${byteCount} bytes in compressed buffer ${index}, which says that it has ${target.length}`,
    );
  }
}

/** The same part, plain, in shared memory. Throws `invalid_arrow`. */
export function decompressed(part: EncodedPart, bytesMax: number): EncodedPart {
  const lengths = uncompressedLengths(part, bytesMax);
  const regions = new Float64Array(part.shape.regions.length);
  let end = 0;
  for (let i = 0; i < lengths.length; i++) {
    regions[i * 2] = end;
    regions[i * 2 + 1] = lengths[i]!;
    end += Math.ceil(lengths[i]! / 8) * 8;
  }
  const body = new Uint8Array(new SharedArrayBuffer(end));
  for (let i = 0; i < lengths.length; i++) {
    const offset = regions[i * 2]!;
    decompressInto(part, i, body.subarray(offset, offset + lengths[i]!));
  }
  const shape: BodyShape = { ...part.shape, regions, codec: null };
  return { shape, body };
}
