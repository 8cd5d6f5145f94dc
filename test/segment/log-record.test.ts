import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromArrays, tableFromIPC, tableToIPC } from 'apache-arrow';
import { SagittaError } from '../../src/common/errors.js';
import type { VectorBatch } from '../../src/common/types.js';
import { type Named, rowsOfColumn } from '../../src/common/vectors.js';
import { encodeSchema } from '../../src/formats/arrow/ipc-writer.js';
import { decodeLogRecord, encodeLogRecord, type LogRecord } from '../../src/segment/log-record.js';
import { encodeSealedStream } from '../../src/segment/sealed-stream.js';
import { decodeDeletions, encodeDeletions } from '../../src/segment/stored-tables.js';
import { batchOf, Random, randomDocument, rowsOf, seedOf, stringAt, utf8Of } from './sample.js';

const TIME_MS = Date.UTC(2026, 10, 21);

function strings(column: VectorBatch['ids'], count: number): string[] {
  return Array.from({ length: count }, (_, i) => stringAt(column, i));
}

function contentOf(record: LogRecord): unknown {
  if (record.kind === 'deleteAll' || record.kind === 'file') return record;
  if (record.kind === 'delete') return { ...record, ids: strings(record.ids, record.count) };
  const { count, ids, vectors, metadata } = record.batch;
  return {
    ...record,
    batch: { ids: strings(ids, count), vectors, metadata: strings(metadata, count) },
  };
}

function isCorrupt(error: unknown): boolean {
  assert.ok(error instanceof SagittaError, `not one of ours: ${error}`);
  assert.equal(error.code, 'data_corrupt');
  assert.match(error.message, /^(Found|Expected) .+\.$/);
  return true;
}

const RECORDS: LogRecord[] = [
  { kind: 'write', timeMs: TIME_MS, batch: batchOf(rowsOf([{ a: 1 }])) },
  { kind: 'delete', timeMs: TIME_MS, ids: utf8Of(['x', 'ä']), count: 2 },
  { kind: 'deleteAll', timeMs: TIME_MS },
  {
    kind: 'file',
    timeMs: TIME_MS,
    file: {
      blob: 'snapshots/c/files/ab-0000000000000001.0123abcd',
      rowCount: 3,
      byteLength: 2 ** 32,
      checksum: '01234567',
      digest: 'ab',
      kept: [{ first: 0, count: 2 }],
      homeKey: 'ä',
    },
  },
];

describe('a log record', () => {
  it('survives encoding and decoding for random batches', () => {
    const seed = seedOf('log records');
    for (let round = 0; round < 100; round++) {
      const random = new Random(seed + round);
      const dimension = 1 + random.below(9);
      const rows = Array.from({ length: 1 + random.below(20) }, (_, i) => ({
        id: random.pick(['a', 'ä', '🐬', 'x'.repeat(512)]) + i,
        values: Array.from({ length: dimension }, () => Math.fround(random.next() - 0.5)),
        metadata: JSON.stringify(randomDocument(random)),
      }));
      const record: LogRecord = { kind: 'write', timeMs: TIME_MS + round, batch: batchOf(rows) };
      assert.deepEqual(contentOf(decodeLogRecord(encodeLogRecord(record))), {
        kind: 'write',
        timeMs: TIME_MS + round,
        batch: {
          ids: rows.map(({ id }) => id),
          vectors: record.batch.vectors,
          metadata: rows.map(({ metadata }) => metadata),
        },
      });
    }
    for (const record of RECORDS) {
      assert.deepEqual(contentOf(decodeLogRecord(encodeLogRecord(record))), contentOf(record));
    }
  });

  it('contains only the rows of a batch inside larger arrays', () => {
    const { ids, vectors, metadata } = batchOf(rowsOf([{ a: 1 }, { a: 2 }, { a: 3 }]));
    const wide = {
      count: 1,
      ids: { offsets: ids.offsets.subarray(1), bytes: ids.bytes },
      vectors: vectors.map((column) => rowsOfColumn(column, 1, 2)),
      metadata: { offsets: metadata.offsets.subarray(1), bytes: metadata.bytes },
    };
    const narrow = batchOf(rowsOf([{ a: 1 }, { a: 2 }, { a: 3 }]).slice(1, 2));
    assert.deepEqual(
      encodeLogRecord({ kind: 'write', timeMs: TIME_MS, batch: wide }),
      encodeLogRecord({ kind: 'write', timeMs: TIME_MS, batch: narrow }),
    );
  });

  it('is decoded at any address, in place if it is aligned', () => {
    const encoded = encodeLogRecord(RECORDS[0]!);
    for (let shift = 0; shift < 9; shift++) {
      const buffer = Buffer.alloc(encoded.length + 16);
      buffer.set(encoded, shift);
      const bytes = buffer.subarray(shift, shift + encoded.length);
      const record = decodeLogRecord(bytes);
      assert.deepEqual(contentOf(record), contentOf(RECORDS[0]!));
      assert.ok(record.kind === 'write');
      const [{ values }] = record.batch.vectors as [Named];
      assert.equal(values.buffer === bytes.buffer, bytes.byteOffset % 8 === 0);
    }
  });

  it('is an Arrow stream that other readers can read', () => {
    const table = tableFromIPC(encodeLogRecord(RECORDS[0]!));
    assert.equal(table.schema.metadata.get('sagitta.record'), 'write');
    const row = table.get(0)!.toJSON();
    assert.equal(row.id, 'id-0');
    assert.equal(row.metadata, '{"a":1}');
    assert.deepEqual([...row.values], [0, 0.5]);
  });

  it('is rejected when any byte is changed', () => {
    for (const record of RECORDS) {
      const encoded = encodeLogRecord(record);
      for (let at = 0; at < encoded.length; at++) {
        const damaged = encoded.slice();
        damaged[at]! ^= 1 << (at % 8);
        assert.throws(() => decodeLogRecord(damaged), isCorrupt, `byte ${at}`);
      }
    }
  });

  it('is rejected at every shorter length', () => {
    for (const record of RECORDS) {
      const encoded = encodeLogRecord(record);
      for (let length = 0; length < encoded.length; length++) {
        assert.throws(() => decodeLogRecord(encoded.subarray(0, length)), isCorrupt);
      }
    }
  });

  it('is rejected when it is something else', () => {
    assert.throws(() => decodeLogRecord(Buffer.from('{"kind":"write"}')), isCorrupt);
    const foreign = tableToIPC(tableFromArrays({ a: new Float64Array(3) }), 'stream');
    assert.throws(() => decodeLogRecord(foreign), isCorrupt);
    const deletions = encodeDeletions({
      rows: Uint32Array.of(1),
      sequences: Float64Array.of(2),
    });
    assert.throws(() => decodeLogRecord(deletions), /time undefined/);
    const metadata = new Map([['sagitta.time_ms', '1']]);
    for (const kind of ['write', 'delete', 'other']) {
      const schema = encodeSchema(
        [{ name: 'id', type: 'int32' }],
        new Map([
          ['sagitta.record', kind],
          ['sagitta.vectors', '[]'],
        ]),
      );
      const bytes = encodeSealedStream(schema, 1, [{ leaf: Int32Array.of(1) }], metadata);
      assert.throws(
        () => decodeLogRecord(bytes),
        /[Ff]ound (the fields|a record of the kind other)/,
      );
    }
  });
});

describe('stored deletions', () => {
  it('survive encoding and decoding', () => {
    for (const rows of [[], [0], [3, 9, 2 ** 32 - 1]]) {
      const sequences = rows.map((_, i) => 2 ** 52 + i);
      const decoded = decodeDeletions(
        encodeDeletions({ rows: Uint32Array.from(rows), sequences: Float64Array.from(sequences) }),
      );
      assert.deepEqual([...decoded.rows], rows);
      assert.deepEqual([...decoded.sequences], sequences);
    }
  });

  it('are rejected when damaged, truncated or something else', () => {
    const encoded = encodeDeletions({
      rows: Uint32Array.of(1, 2),
      sequences: Float64Array.of(5, 6),
    });
    for (let at = 0; at < encoded.length; at++) {
      const damaged = encoded.slice();
      damaged[at]! ^= 1 << (at % 8);
      assert.throws(() => decodeDeletions(damaged), isCorrupt);
      assert.throws(() => decodeDeletions(encoded.subarray(0, at)), isCorrupt);
    }
    assert.throws(() => decodeDeletions(encodeLogRecord(RECORDS[1]!)), /fields/);
  });
});
