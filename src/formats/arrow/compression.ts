// Decompresses the buffers of record batches. Each is compressed separately: 8 bytes of uncompressed length (-1: not
// compressed), then a frame of lz4 or zstd. The lengths are checked against a limit before anything is allocated,
// and a frame that holds more or fewer bytes is an error.

import { sharedBytes } from '../../common/shared-array.js';
import { invalidArrow } from './arrow-errors.js';
import type { EncodedBody } from './encoded-batch.js';
import { decodeLz4Frame } from './lz4-frame.js';
import type { BodyShape } from './message.js';
import { decodeZstd, loadZstd } from './zstd.js';

const LENGTH_BYTES = 8;
const STORED = -1;

/** Returns a received body with the decoder that it needs, so that any thread can decompress it. */
export async function encodedBody(shape: BodyShape, bytes: Uint8Array): Promise<EncodedBody> {
  return shape.codec === 'zstd' ? { shape, bytes, zstd: await loadZstd() } : { shape, bytes };
}

/** Returns the uncompressed length of every buffer. Throws `invalid_arrow` if they exceed the limit. */
export function uncompressedLengths({ shape, bytes }: EncodedBody, bytesMax: number): Float64Array {
  const { regions, codec } = shape;
  const lengths = new Float64Array(regions.length / 2);
  let total = 0;
  for (let i = 0; i < lengths.length; i++) {
    const length = regions[i * 2 + 1]!;
    lengths[i] = codec === null ? length : lengthOf(bytes, regions[i * 2]!, length, i);
    total += lengths[i]!;
  }
  if (total > bytesMax) {
    throw invalidArrow(`a body of ${total} bytes when decompressed`, {
      expected: `at most ${bytesMax} bytes`,
      advice: 'Send smaller batches.',
    });
  }
  return lengths;
}

function lengthOf(bytes: Uint8Array, offset: number, length: number, index: number): number {
  if (length === 0) return 0;
  if (length < LENGTH_BYTES) {
    throw invalidArrow(`${length} bytes of compressed buffer ${index}`, {
      expected: 'at least 8 bytes and a frame',
    });
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, LENGTH_BYTES);
  const uncompressed = view.getInt32(4, true) * 2 ** 32 + view.getUint32(0, true);
  if (uncompressed === STORED) return length - LENGTH_BYTES;
  if (uncompressed < 0) throw invalidArrow(`${uncompressed} bytes in compressed buffer ${index}`);
  return uncompressed;
}

/** Writes a decompressed buffer to `target`, which must be of its length. Throws `invalid_arrow`. */
export function decompressInto(body: EncodedBody, index: number, target: Uint8Array): void {
  const { regions, codec } = body.shape;
  const offset = regions[index * 2]!;
  const length = regions[index * 2 + 1]!;
  const bytes = body.bytes.subarray(offset, offset + length);
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
      codec === 'zstd' ? decodeZstd(body.zstd!, frame, target) : decodeLz4Frame(frame, target);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalidArrow(`buffer ${index}, whose ${codec} frame is damaged (${reason})`, {
      cause: error,
    });
  }
  if (byteCount !== target.length) {
    throw invalidArrow(
      `${byteCount} bytes in compressed buffer ${index}, which announces ${target.length}`,
    );
  }
}

/** Returns the body uncompressed and in shared memory. Throws `invalid_arrow`. */
export function decompressed(body: EncodedBody, bytesMax: number): EncodedBody {
  const lengths = uncompressedLengths(body, bytesMax);
  const regions = new Float64Array(body.shape.regions.length);
  let end = 0;
  for (let i = 0; i < lengths.length; i++) {
    regions[i * 2] = end;
    regions[i * 2 + 1] = lengths[i]!;
    end += Math.ceil(lengths[i]! / 8) * 8;
  }
  const bytes = sharedBytes(end);
  for (let i = 0; i < lengths.length; i++) {
    const offset = regions[i * 2]!;
    decompressInto(body, i, bytes.subarray(offset, offset + lengths[i]!));
  }
  const shape: BodyShape = { ...body.shape, regions, codec: null };
  return { shape, bytes };
}
