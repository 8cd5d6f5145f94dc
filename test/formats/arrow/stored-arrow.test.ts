// Stored batches are read in place, and no view reaches outside its buffer.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  BodyWriter,
  encodeSchema,
  type FieldToWrite,
  layOutArrowStream,
  STREAM_ALIGNMENT,
} from '../../../src/formats/arrow/ipc-writer.js';
import { decodeArrowStream, expectFields } from '../../../src/formats/arrow/stored-arrow.js';
import { readUtf8 } from '../../../src/formats/arrow/strings.js';

const NUMBERS: FieldToWrite[] = [{ name: 'n', type: 'float64' }];
const TEXTS: FieldToWrite[] = [{ name: 't', type: 'utf8' }];

/** Returns a stream of one column in the middle of a larger shared buffer. */
function streamOf(fields: FieldToWrite[], rowCount: number, body: BodyWriter): Uint8Array {
  const layout = layOutArrowStream(
    encodeSchema(fields),
    rowCount,
    body,
    new Map([['key', 'value']]),
  );
  const bytes = new Uint8Array(new SharedArrayBuffer(layout.length + 256));
  return layout.copyInto(bytes.subarray(128)).subarray(0, layout.length);
}

function bodyOf(rowCount: number, ...buffers: ArrayBufferView[]): BodyWriter {
  const body = new BodyWriter(STREAM_ALIGNMENT);
  body.node(rowCount);
  body.noNulls();
  for (const buffer of buffers) body.buffer(buffer);
  return body;
}

describe('a stored batch', () => {
  it('is read in place, with its metadata', () => {
    const bytes = streamOf(NUMBERS, 2, bodyOf(2, Float64Array.of(1, 2)));
    const { schema, rowCount, columns, metadata } = decodeArrowStream(bytes);
    expectFields(schema.fields, NUMBERS);
    assert.equal(rowCount, 2);
    assert.equal(metadata.get('key'), 'value');
    const values = columns[0]!.buffer(0, Float64Array, 2);
    assert.deepEqual([...values], [1, 2]);
    assert.equal(values.buffer, bytes.buffer);
  });

  it('is rejected when a buffer is too short, or when columns and buffers do not match its schema', () => {
    const short = decodeArrowStream(streamOf(NUMBERS, 2, bodyOf(2, new Uint8Array(15))));
    assert.throws(() => short.columns[0]!.buffer(0, Float64Array, 2), /found 15 bytes/i);
    const cases: [RegExp, BodyWriter][] = [
      [/Expected 2; found 3 values in column "n"/, bodyOf(3, new Uint8Array(24))],
      [/Expected more buffers for float64; found 1 buffers/, bodyOf(2)],
      [
        /Expected 1 columns with 2 buffers; found 1 columns with 3 buffers/,
        bodyOf(2, new Uint8Array(16), new Uint8Array(8)),
      ],
    ];
    for (const [message, body] of cases) {
      assert.throws(() => decodeArrowStream(streamOf(NUMBERS, 2, body)), {
        code: 'data_corrupt',
        message,
      });
    }
  });

  it('has strings whose offsets ascend and end within their bytes', () => {
    const read = (offsets: number[], byteLength: number) => {
      const rowCount = offsets.length - 1;
      const body = bodyOf(rowCount, Int32Array.from(offsets), new Uint8Array(byteLength));
      return readUtf8(decodeArrowStream(streamOf(TEXTS, rowCount, body)).columns[0]!);
    };
    assert.deepEqual([...read([0, 1, 3], 3).offsets], [0, 1, 3]);
    assert.throws(() => read([0, 1, 4], 3), /at most 3; found offset 4 at index 2 of column "t"/);
    assert.throws(() => read([0, 2, 1], 3), /at least 2; found offset 1 at index 2 of column "t"/);
    assert.throws(
      () => read([-1, 2, 3], 3),
      /at least 0; found offset -1 at index 0 of column "t"/,
    );
  });

  it('is rejected when its fields are not the expected ones', () => {
    const { schema } = decodeArrowStream(streamOf(NUMBERS, 2, bodyOf(2, new Float64Array(2))));
    assert.throws(() => expectFields(schema.fields, TEXTS), {
      code: 'data_corrupt',
      message: 'Expected the fields t: utf8; found the fields n: float64.',
    });
  });
});
