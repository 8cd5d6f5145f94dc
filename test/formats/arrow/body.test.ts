import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BufferRegion, FieldNode, RecordBatch } from 'apache-arrow/ipc/metadata/message';
import { BodyReader, BodyWriter } from '../../../src/formats/arrow/body.js';

/** A reader of a body of 64 bytes with the given buffers, [offset, length] each. */
function readerOf(regions: readonly (readonly [number, number])[], nodes: number[] = []) {
  const batch = new RecordBatch(
    2,
    nodes.map((length) => new FieldNode(length, 0)),
    regions.map(([offset, length]) => new BufferRegion(offset, length)),
    null,
  );
  // The body lies inside a larger buffer, whose other bytes must stay out of reach.
  const bytes = new Uint8Array(new SharedArrayBuffer(256));
  return new BodyReader(bytes.subarray(128, 192), batch);
}

describe('the body of a record batch', () => {
  it('is read in place', () => {
    const view = readerOf([[8, 16]]).buffer(Float64Array, 2);
    assert.deepEqual([view.byteOffset, view.length], [136, 2]);
    assert.equal(readerOf([[64, 0]]).buffer(Int32Array, 0).length, 0);
  });

  it('gives no view of what lies outside of a buffer', () => {
    const cases: [RegExp, readonly [number, number]][] = [
      [/15 bytes in buffer 0, expected 16/, [0, 15]],
      [/bytes 56 to 72 of a body of 64/, [56, 16]],
      [/bytes 128 to 144 of a body of 64/, [128, 16]],
      [/bytes -8 to 8 of a body/, [-8, 16]],
      [/bytes 16 to 0 of a body/, [16, -16]],
      [/at byte 4, unaligned/, [4, 16]],
    ];
    for (const [message, region] of cases) {
      assert.throws(() => readerOf([region]).buffer(Float64Array, 2), message);
    }
    assert.throws(() => readerOf([]).skipBuffer(), /0 buffers, expected more/);
  });

  it('has the lengths that are expected', () => {
    assert.throws(() => readerOf([], [3]).node(2), /3 values in column 0, expected 2/);
    assert.throws(() => readerOf([], []).node(2), /no values in column 0/);
  });

  it('gives strings whose offsets stay in their bytes', () => {
    const write = (offsets: number[], byteLength: number) => {
      const body = new BodyWriter(8);
      body.node(offsets.length - 1);
      body.noNulls();
      body.buffer(Int32Array.from(offsets));
      body.buffer(new Uint8Array(byteLength));
      const bytes = body.layout.copyInto(new Uint8Array(body.layout.length));
      const batch = new RecordBatch(offsets.length - 1, body.nodes, body.regions, null);
      return new BodyReader(bytes, batch).utf8(offsets.length - 1);
    };
    assert.deepEqual([...write([0, 1, 3], 3).offsets], [0, 1, 3]);
    assert.throws(() => write([0, 1, 4], 3), /offset 4 into 3 bytes/);
    assert.throws(() => write([0, 2, 1], 3), /offset 1 after 2/);
    assert.throws(() => write([-1, 2, 3], 3), /offset -1 after 0/);
  });
});
