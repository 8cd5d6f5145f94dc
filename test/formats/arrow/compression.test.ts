// Decompression of lz4 and zstd buffers that pyarrow wrote, intact and damaged.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decompressed, uncompressedLengths } from '../../../src/formats/arrow/compression.js';
import type { EncodedBatch, EncodedBody } from '../../../src/formats/arrow/encoded-batch.js';
import { decodeLz4Frame } from '../../../src/formats/arrow/lz4-frame.js';
import { decodeZstd, loadZstd } from '../../../src/formats/arrow/zstd.js';
import { createThreadPool } from '../../../src/platform/pool.js';
import { decompressBodyTask } from '../../../src/server/bodies/arrow-rows.js';
import { LZ4_STREAM, ZSTD_STREAM } from './fixtures.js';
import { batchesOf, rowsOf } from './streams.js';

const zstd = await loadZstd();

const DECODERS = {
  lz4_frame: decodeLz4Frame,
  zstd: (frame: Uint8Array, target: Uint8Array) => decodeZstd(zstd, frame, target),
};

/** Returns the compressed buffers of a stream's first batch: frames and their decompressed lengths. */
async function framesOf(stream: Uint8Array) {
  const [batch] = await batchesOf(stream);
  const { shape, bytes: body } = batch!.body;
  const lengths = uncompressedLengths(batch!.body, 1_000_000);
  return [...lengths].flatMap((length, i) => {
    const [offset, byteCount] = [shape.regions[i * 2]!, shape.regions[i * 2 + 1]!];
    const frame = body.slice(offset + 8, offset + byteCount);
    const isStored = byteCount - 8 === length;
    return byteCount === 0 || isStored ? [] : [{ frame, length, codec: shape.codec! }];
  });
}

describe('compressed buffers', () => {
  it('of lz4 and zstd streams decompress to the rows that were written', async () => {
    for (const stream of [LZ4_STREAM, ZSTD_STREAM]) {
      const rows = await rowsOf(stream);
      assert.equal(rows.length, 24);
      rows.forEach((row, i) => {
        assert.deepEqual(row, {
          id: String(i),
          values: [i % 7, i % 5],
          metadata: `{"tag":"tag ${i % 9} and more of it"}`,
        });
      });
    }
  });

  it('decompress in a worker thread, zstd included', async () => {
    const pool = createThreadPool({ threadCount: 1 });
    try {
      for (const stream of [LZ4_STREAM, ZSTD_STREAM]) {
        const [{ body }] = (await batchesOf(stream)) as [EncodedBatch];
        const input = { part: body, bytesMax: 1_000_000 };
        const { shape, bytes } = await pool.run(decompressBodyTask, input);
        assert.equal(shape.codec, null);
        assert.deepEqual(bytes, decompressed(body, 1_000_000).bytes);
      }
    } finally {
      await pool.close();
    }
  });

  it('report the decompressed length and fail when it exceeds the target', async () => {
    for (const stream of [LZ4_STREAM, ZSTD_STREAM]) {
      const frames = await framesOf(stream);
      assert.ok(frames.length > 0);
      for (const { frame, length, codec } of frames) {
        const decode = DECODERS[codec];
        assert.equal(decode(frame, new Uint8Array(length)), length);
        assert.throws(() => decode(frame, new Uint8Array(length - 1)), /more bytes than announced/);
        assert.equal(decode(frame, new Uint8Array(length + 1)), length);
      }
    }
  });

  it('that are damaged give an error or end in time, and never write outside the target', async () => {
    for (const stream of [LZ4_STREAM, ZSTD_STREAM]) {
      for (const { frame, length, codec } of await framesOf(stream)) {
        const room = new Uint8Array(length + 64);
        const target = room.subarray(32, 32 + length);
        const start = performance.now();
        let refusedCount = 0;
        const decode = (bytes: Uint8Array) => {
          try {
            DECODERS[codec](bytes, target);
          } catch (error) {
            assert.ok(error instanceof Error && !(error instanceof TypeError), String(error));
            refusedCount++;
          }
        };
        for (let at = 0; at < frame.length; at++) {
          for (const change of [1, 0x80, 0xff]) {
            const bytes = frame.slice();
            bytes[at]! ^= change;
            decode(bytes);
          }
          decode(frame.subarray(0, at));
        }
        assert.ok(refusedCount > frame.length);
        assert.ok(performance.now() - start < 30_000);
        const outside = [...room.subarray(0, 32), ...room.subarray(32 + length)];
        assert.ok(outside.every((byte) => byte === 0));
      }
    }
  });

  it('whose announced lengths exceed the limit are rejected before anything is allocated', () => {
    const body = new Uint8Array(16);
    new DataView(body.buffer).setBigInt64(0, 2n ** 40n, true);
    const shape = {
      rowCount: 1,
      nodes: new Float64Array(2),
      regions: Float64Array.of(0, 16),
      variadicCounts: new Float64Array(0),
      codec: 'zstd' as const,
    };
    const part: EncodedBody = { shape, bytes: body, zstd };
    assert.throws(() => decompressed(part, 64_000_000), {
      code: 'invalid_arrow',
      message: /at most 64000000 bytes; found a body of 1099511627776 bytes when decompressed/,
    });
    new DataView(body.buffer).setBigInt64(0, -2n, true);
    assert.throws(() => decompressed(part, 64_000_000), /-2 bytes in compressed buffer 0/);
    new DataView(body.buffer).setBigInt64(0, -1n, true);
    assert.equal(decompressed(part, 64_000_000).bytes.length, 8);
    new DataView(body.buffer).setBigInt64(0, 5n, true);
    assert.throws(() => decompressed(part, 64_000_000), /buffer 0, whose zstd frame is damaged/);
  });
});
