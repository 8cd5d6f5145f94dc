// Rows read from batches: the columns that are used, and the issues of invalid rows.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  Dictionary,
  Field,
  Float64,
  Int8,
  Int64,
  List,
  Table,
  tableFromIPC,
  tableToIPC,
  Uint64,
  vectorFromArray,
} from 'apache-arrow';
import { float16Table } from '../../../src/common/elements.js';
import {
  type ColumnToWrite,
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
  type FieldToWrite,
} from '../../../src/formats/arrow/ipc-writer.js';
import { findNotFinite } from '../../../src/formats/arrow/vectors.js';
import { VIEWS_STREAM } from './fixtures.js';
import { batchesOf, type ReadOptions, readBatch, rowsOf, textColumn } from './streams.js';

const VECTORS = { vectorOf: 2 } as const;

function streamOf(rowCount: number, columns: [string, FieldToWrite['type'], ColumnToWrite][]) {
  const fields = columns.map(([name, type]) => ({ name, type }));
  const data = columns.map(([, , column]) => column);
  const metadata = new Map([['sequence', '7']]);
  return Buffer.concat([
    encodeSchema(fields, metadata),
    ...encodeRecordBatch(rowCount, data),
    encodeEnd(),
  ]);
}

const text = (...texts: string[]) => ({ leaf: textColumn(texts) });
const vectors = (...values: number[]) => ({ vectors: Float32Array.from(values) });

async function issuesOf(bytes: Uint8Array, options: ReadOptions = {}) {
  const [batch] = await batchesOf(bytes);
  return readBatch(batch!, options).issues;
}

describe('rows of a batch', () => {
  it('are read from views, lists, maps and dictionaries', async () => {
    const rows = await rowsOf(VIEWS_STREAM);
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['id-0', 'id-1', 'id-2', 'id-3', 'id-4', 'id-5'],
    );
    assert.deepEqual(JSON.parse(rows[5]!.metadata!), {
      sv: 'a long string beyond twelve bytes 5',
      lv: [5, 5],
      m: { k: 5 },
      s: { a: 5, b: ['x', null] },
    });
  });

  it('include other columns as members of a metadata column of JSON text', async () => {
    const bytes = streamOf(2, [
      ['vector', VECTORS, vectors(1, 2, 3, 4)],
      ['metadata', 'utf8', text('{"a":[1]} ', '{ }')],
      ['na"me', 'utf8', text('x\n', 'ü')],
      ['number', 'float32', { leaf: Float32Array.of(0.1, 3e30) }],
    ]);
    const rows = await rowsOf(bytes);
    assert.deepEqual(
      rows.map(({ metadata }) => metadata),
      ['{"a":[1],"na\\"me":"x\\n","number":0.1}', '{ "na\\"me":"ü","number":3e+30}'],
    );
    assert.equal(rows[0]!.id, null);
    assert.equal(tableFromIPC(bytes).schema.metadata.get('sequence'), '7');
  });

  it('are rejected when a string is not UTF-8 by itself', async () => {
    const bytes = Buffer.from('xäy');
    for (const [ends, row] of [
      [[1, 2, 4], 1],
      [[0, 2, 4], 1],
    ] as const) {
      const ids = { offsets: Int32Array.of(0, ...ends), bytes };
      const stream = streamOf(3, [
        ['id', 'utf8', { leaf: ids }],
        ['values', VECTORS, vectors(1, 2, 3, 4, 5, 6)],
      ]);
      await assert.rejects(rowsOf(stream), {
        code: 'invalid_arrow',
        message: `record batch 0: found text that is not UTF-8 in row ${row} of column "id".`,
      });
    }
  });

  it('have exact text for integer ids', async () => {
    const ids = BigInt64Array.of(-(2n ** 63n), 2n ** 53n + 1n, 0n);
    const bytes = streamOf(3, [
      ['key', 'int64', { leaf: ids }],
      ['v', VECTORS, vectors(1, 2, 3, 4, 5, 6)],
    ]);
    const rows = await rowsOf(bytes, { idColumn: 'key', vectorColumn: 'v' });
    assert.deepEqual(rows[1], { id: '9007199254740993', values: [3, 4], metadata: null });
    assert.deepEqual([rows[0]!.id, rows[2]!.id], ['-9223372036854775808', '0']);
  });

  it('have the integers of a dictionary as ids', async () => {
    for (const type of [new Int64(), new Uint64()]) {
      const values = [9007199254740993n, null, 7n, 9007199254740993n];
      const table = new Table({
        id: vectorFromArray(values, new Dictionary(type, new Int8())),
        values: vectorFromArray(
          values.map(() => [1, 2]),
          new List(new Field('item', new Float64())),
        ),
      });
      const bytes = tableToIPC(table, 'stream');
      assert.deepEqual(
        (await issuesOf(bytes)).map(({ row, member }) => [row, member]),
        [[1, 'id']],
      );
      const ids = (await rowsOf(tableToIPC(table.slice(2), 'stream'))).map(({ id }) => id);
      assert.deepEqual(ids, ['7', '9007199254740993']);
    }
  });

  it('give an error that names a column that is missing or has the wrong type', async () => {
    const bytes = streamOf(1, [
      ['a', VECTORS, vectors(1, 2)],
      ['b', 'float32', { leaf: Float32Array.of(1) }],
    ]);
    const cases: [ReadOptions, RegExp][] = [
      [{}, /no column "values", "vector" or "embedding"; found "a", "b"/],
      [{ vectorColumn: 'c' }, /no vector column "c"; found "a", "b"/],
      [{ vectorColumn: 'b' }, /vector column "b" must hold lists of numbers; found float32/],
      [
        { vectorColumn: 'a', idColumn: 'b' },
        /id column "b" must hold text, integers or UUIDs; found float32/,
      ],
    ];
    const [batch] = await batchesOf(bytes);
    for (const [options, message] of cases) {
      assert.throws(() => readBatch(batch!, options), { code: 'invalid_request', message });
    }
  });

  it('have issues if a vector is not finite or too short, an id too long or metadata too large', async () => {
    const bytes = streamOf(3, [
      ['id', 'utf8', text('a', 'b'.repeat(600), 'c')],
      ['values', VECTORS, vectors(1, 2, 3, Number.NaN, Infinity, 6)],
      ['m', 'utf8', text('x'.repeat(5_000), '', 'y')],
    ]);
    const found = (await issuesOf(bytes)).map(
      ({ row, member, code }) => `${row} ${member} ${code}`,
    );
    assert.deepEqual(found, [
      '1 values invalid_vector',
      '2 values invalid_vector',
      '1 id limit_exceeded',
      '0 metadata invalid_metadata',
    ]);
    const [issue] = await issuesOf(bytes, { dimension: 3 });
    assert.deepEqual([issue!.code, issue!.expected, issue!.actual], ['dimension_mismatch', 3, 2]);
  });

  it('have issues if metadata repeats a column or JSON cannot express a value', async () => {
    const bytes = streamOf(3, [
      ['values', VECTORS, vectors(1, 2, 3, 4, 5, 6)],
      ['metadata', 'utf8', text('{"n":1}', '{"m":2}', '[]')],
      ['n', 'float32', { leaf: Float32Array.of(1, Number.NaN, 1) }],
    ]);
    const details = (await issuesOf(bytes)).map(({ detail }) => detail);
    assert.match(details[0]!, /found a member of "metadata" with the same name as the column "n"/);
    assert.match(details[1]!, /in the column "n"; found NaN\./);
    assert.match(details[2]!, /found text that is not a JSON object/);
  });

  it('are limited in text, however often a dictionary repeats it', async () => {
    const bytes = streamOf(3, [
      ['values', VECTORS, vectors(1, 2, 3, 4, 5, 6)],
      ['m', 'utf8', text('x'.repeat(9_000), 'x'.repeat(9_000), 'x'.repeat(9_000))],
    ]);
    const [batch] = await batchesOf(bytes);
    const read = () => readBatch(batch!, { metadataBytesMax: 100 }).issues.length;
    assert.equal(read(), 3);
  });
});

describe('floats', () => {
  it('of 16 bits are converted exactly', () => {
    const table = float16Table();
    const known = { 1: 2 ** -24, 1023: 1023 * 2 ** -24, 15360: 1, 31743: 65_504, 49152: -2 };
    for (const [bits, value] of Object.entries(known)) assert.equal(table[Number(bits)], value);
    assert.ok(Object.is(table[0x8000], -0) && table[0x7c00] === Infinity);
    assert.ok(Number.isNaN(table[0x7e00]));
  });

  it('that are not finite are found at any position', () => {
    const values = new Float32Array(10_000);
    assert.equal(findNotFinite(values), -1);
    for (const at of [0, 1, 4_095, 4_096, 9_999]) {
      for (const bad of [Number.NaN, Infinity, -Infinity]) {
        assert.equal(findNotFinite(values.with(at, bad)), at);
      }
    }
  });
});
