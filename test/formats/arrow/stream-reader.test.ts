// Valid streams in chunks of every length, and invalid streams.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type DataType, Field, Float32, List, Schema } from 'apache-arrow';
import { Message } from 'apache-arrow/ipc/metadata/message';
import { SagittaError } from '../../../src/common/errors.js';
import { transferables } from '../../../src/formats/arrow/encoded-batch.js';
import { ArrowStreamReader } from '../../../src/formats/arrow/stream-reader.js';
import { LEGACY_STREAM, LISTS_STREAM } from './fixtures.js';
import { batchesOf, chunked, plainStream, readBatch, rowsOf } from './streams.js';

const [SCHEMA, FIRST, SECOND, END] = plainStream([['a', 'b'], ['ä']]) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
];
const WHOLE = Buffer.concat([SCHEMA, FIRST, SECOND, END]);

/** Returns the bytes with a 32-bit number changed. The metadata of a message starts at its byte 8. */
function withInt32(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const copy = Buffer.from(bytes);
  copy.writeInt32LE(value, at);
  return copy;
}

/** Returns a schema with fields that the writer does not write. */
function schemaOf(type: DataType): Uint8Array {
  const metadata = Message.encode(Message.from(new Schema([new Field('x', type)])));
  const head = Buffer.alloc(8);
  head.writeInt32LE(-1, 0);
  head.writeInt32LE(metadata.length, 4);
  return Buffer.concat([head, metadata]);
}

async function refusal(bytes: Uint8Array): Promise<string> {
  try {
    for (const batch of await batchesOf(bytes)) readBatch(batch);
  } catch (error) {
    assert.ok(error instanceof SagittaError, String(error));
    assert.equal(error.code, 'invalid_arrow');
    return error.message;
  }
  return 'none';
}

describe('an Arrow stream', () => {
  it('gives the same rows in chunks of any length', async () => {
    const expected = [
      { id: 'a', values: [0, 1], metadata: null },
      { id: 'b', values: [2, 3], metadata: null },
      { id: 'ä', values: [0, 1], metadata: null },
    ];
    for (const chunkBytes of [1, 3, 7, 64, 1000]) {
      assert.deepEqual(await rowsOf(WHOLE, {}, chunkBytes), expected);
    }
  });

  it('may end without the end-of-stream mark', async () => {
    assert.equal((await rowsOf(Buffer.concat([SCHEMA, FIRST]))).length, 2);
  });

  it('is read in the framing before Arrow 0.15', async () => {
    const now = await rowsOf(LISTS_STREAM);
    assert.deepEqual(await rowsOf(LEGACY_STREAM), now);
    assert.deepEqual(now[0], {
      id: '1',
      values: [1.5, -2],
      metadata: '{"a":1,"ts":"1970-01-01T00:00:00.001Z","d":1.50}',
    });
    assert.equal(now[1]!.metadata, '{"ts":null,"d":null}');
  });

  it('skips batches without rows but counts them', async () => {
    const batches = await batchesOf(Buffer.concat(plainStream([[], ['a'], [], ['b', 'c']])));
    assert.deepEqual(
      batches.map(({ index, firstRow, rowCount }) => [index, firstRow, rowCount]),
      [
        [1, 0, 1],
        [3, 1, 2],
      ],
    );
  });

  it('reports the bytes it holds, and 0 at the end', async () => {
    const held: number[] = [];
    const reader = new ArrowStreamReader(chunked(WHOLE, 50), {
      batchBytesMax: 1000,
      onBuffered: (byteCount) => held.push(byteCount),
    });
    for await (const batch of reader.batches()) {
      assert.equal(transferables(batch)[0]!.byteLength, batch.body.bytes.length);
    }
    assert.equal(held.at(-1), 0);
    assert.ok(Math.max(...held) >= 50 && Math.max(...held) < 500);
  });

  it('closes its source when reading stops early', async () => {
    let isClosed = false;
    async function* source() {
      try {
        yield* chunked(WHOLE, 100);
      } finally {
        isClosed = true;
      }
    }
    for await (const _ of new ArrowStreamReader(source(), { batchBytesMax: 1000 }).batches()) break;
    assert.ok(isClosed);
  });

  it('gives values as a view of the body', async () => {
    const [batch] = await batchesOf(WHOLE);
    assert.equal(readBatch(batch!).values.buffer, batch!.body.bytes.buffer);
  });
});

describe('an invalid Arrow stream', () => {
  const cut = (bytes: Uint8Array, less: number) => bytes.subarray(0, bytes.length - less);
  const head = withInt32(SCHEMA, 0, 0).subarray(0, 8);
  let deep: DataType = new Float32();
  for (let i = 0; i < 20; i++) deep = new List(new Field('x', deep));
  const cases: { name: string; bytes: Uint8Array; message: RegExp }[] = [
    {
      name: 'nothing',
      bytes: new Uint8Array(0),
      message: /schema: expected an Arrow stream with a schema; found nothing/,
    },
    {
      name: 'a file',
      bytes: Buffer.from('ARROW1\0\0'),
      message: /expected an Arrow stream; found an Arrow file/,
    },
    { name: 'JSON', bytes: Buffer.from('{"id": "a"}'), message: /metadata of 1684611707 bytes/ },
    { name: 'two bytes', bytes: Buffer.of(255, 255), message: /after 2 of 4 bytes of a length/ },
    { name: 'a mark alone', bytes: SCHEMA.subarray(0, 4), message: /after 0 of 4 bytes/ },
    { name: 'half a schema', bytes: cut(SCHEMA, 9), message: /schema: .* bytes of metadata/ },
    {
      name: 'half a batch',
      bytes: Buffer.concat([SCHEMA, FIRST, cut(SECOND, 5)]),
      message: /record batch 1: found the end of the stream after \d+ of \d+ bytes of a body/,
    },
    {
      name: 'more after the end',
      bytes: Buffer.concat([WHOLE, Buffer.of(0)]),
      message: /record batch 2: found bytes after the end-of-stream mark/,
    },
    { name: 'a batch first', bytes: FIRST, message: /found a batch message first/ },
    { name: 'a schema twice', bytes: Buffer.concat([SCHEMA, SCHEMA]), message: /a second schema/ },
    {
      name: 'zeros as metadata',
      bytes: Buffer.concat([withInt32(head, 0, -1), Buffer.alloc(999)]),
      message: /schema: expected version 4 or 5; found/,
    },
    {
      name: 'an offset far out',
      bytes: withInt32(SCHEMA, 8, 0x7fffffff),
      message: /a reference to/,
    },
    {
      name: 'a negative length',
      bytes: withInt32(SCHEMA, 4, -9),
      message: /metadata of 4294967287/,
    },
    { name: 'a deep schema', bytes: schemaOf(deep), message: /more than 16 levels deep/ },
  ];
  for (const { name, bytes, message } of cases) {
    it(`is rejected: ${name}`, async () => assert.match(await refusal(bytes), message));
  }

  it('is rejected when a body exceeds the limit for batches', async () => {
    const reader = new ArrowStreamReader(chunked(WHOLE), { batchBytesMax: 8 });
    await assert.rejects(reader.batches().next(), {
      code: 'invalid_arrow',
      message: /record batch 0: expected at most 8 bytes; found a body of \d+ bytes\. Send smaller/,
    });
  });

  it('with false lengths allocates nothing', async () => {
    // Changes every 64-bit number in the batch's metadata in turn: row counts, null counts, regions and body length.
    const metadataEnd = 8 + Buffer.from(FIRST).readInt32LE(4);
    const before = process.memoryUsage().rss;
    const found = new Set<string>();
    for (let at = 8; at + 8 <= metadataEnd; at += 8) {
      for (const value of [-1n, 2n ** 62n, 2n ** 40n, 3n, BigInt(FIRST.length - metadataEnd)]) {
        const bytes = Buffer.from(FIRST);
        bytes.writeBigInt64LE(value, at);
        found.add(await refusal(Buffer.concat([SCHEMA, bytes, SECOND, END])));
      }
    }
    assert.ok(found.size > 10);
    assert.ok([...found].some((message) => message.includes('overlap')));
    assert.ok(process.memoryUsage().rss - before < 100e6);
  });
});
