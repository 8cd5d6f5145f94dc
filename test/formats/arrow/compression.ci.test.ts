// Compressed streams that need a lot of memory.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeZstd, loadZstd } from '../../../src/formats/arrow/zstd.js';

const zstd = await loadZstd();

describe('compressed buffers', () => {
  it('that make the Zstandard decoder grow do not affect later ones', () => {
    const byteCount = 48_000_000;
    const runs = Math.ceil(byteCount / 131_072);
    // A frame of runs: each has a 3-byte header with the block's length and one byte to repeat.
    const frame = Buffer.alloc(6 + runs * 4);
    frame.writeUInt32LE(0xfd2fb528, 0);
    frame.writeUInt8(0x58, 5);
    for (let i = 0; i < runs; i++) {
      const isLast = i === runs - 1;
      const length = isLast ? byteCount - i * 131_072 : 131_072;
      frame.writeUIntLE((length << 3) | 2 | (isLast ? 1 : 0), 6 + i * 4, 3);
      frame.writeUInt8(7, 9 + i * 4);
    }
    const target = new Uint8Array(byteCount);
    for (let round = 0; round < 2; round++) {
      target.fill(0);
      assert.equal(decodeZstd(zstd, frame, target), byteCount);
      assert.ok(target.every((byte) => byte === 7));
      assert.throws(
        () => decodeZstd(zstd, frame, new Uint8Array(100)),
        /more bytes than announced/,
      );
    }
    assert.throws(() => decodeZstd(zstd, frame, new Uint8Array(0)), /more bytes than announced/);
    assert.equal(decodeZstd(zstd, new Uint8Array(0), new Uint8Array(0)), 0);
  });
});
