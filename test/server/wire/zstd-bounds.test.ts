// A Zstandard stream may end between frames but not within one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ZstdBounds } from '../../../src/server/wire/zstd-bounds.js';

const FRAMES = {
  'a frame with the length of its content': 'KLUv/WDgAG0AADBoZWxsbyABANdRSxE=',
  'a frame with a checksum': 'KLUv/SQBCQAAeCMRBIM=',
  'a frame with several blocks, the last of one repeated byte':
    'KLUv/aDgkwQAVAAAEAAAAQD7/znAAgIAEAADnwQA',
  'a frame to be skipped': 'UipNGAMAAAABAgM=',
};

function isComplete(bytes: Uint8Array, chunkBytes: number): boolean {
  const frames = new ZstdBounds();
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    frames.add(bytes.subarray(at, at + chunkBytes));
  }
  return frames.isComplete;
}

describe('a stream of Zstandard', () => {
  for (const [name, text] of Object.entries(FRAMES)) {
    it(`may end after ${name}, and not within`, () => {
      const frame = Buffer.from(text, 'base64');
      for (const chunkBytes of [1, 2, 5, 1_000]) {
        assert.ok(isComplete(Buffer.concat([frame, frame]), chunkBytes));
        for (let length = 1; length < frame.length; length++) {
          assert.ok(!isComplete(frame.subarray(0, length), chunkBytes), `${length} bytes`);
          assert.ok(!isComplete(Buffer.concat([frame, frame.subarray(0, length)]), chunkBytes));
        }
      }
    });
  }
});
