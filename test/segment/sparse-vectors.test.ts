// Sparse vectors of segments: through appends, sealing, files, compaction and log records.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sparseColumnOf, sparseRows } from '../../src/common/sparse-column.js';
import type { NamedSparse, VectorBatch } from '../../src/common/types.js';
import { decodeLogRecord, encodeLogRecord, recordBytesMax } from '../../src/segment/log-record.js';
import { Segment } from '../../src/segment/segment.js';
import { decodeSegment } from '../../src/segment/segment-file.js';
import { activeOptions, batchOf, encodeSegment, type Random, rowsOf, seedOf } from './sample.js';
import { checkSegmentLife } from './segment-life.js';

const NAMES = ['words', 'tags'];

/** The sparse vectors of one row by name: values by ascending index. */
type Row = Readonly<Record<string, ReadonlyMap<number, number>>>;

function randomRow(random: Random): Row {
  const row: Record<string, ReadonlyMap<number, number>> = {};
  for (const name of NAMES) {
    if (random.next() < 0.4) continue;
    const indices = new Set(Array.from({ length: 1 + random.below(5) }, () => random.below(30)));
    const ascending = [...indices, 0xffff_ffff].sort((a, b) => a - b);
    row[name] = new Map(ascending.map((index) => [index, Math.fround(random.next() + 0.1)]));
  }
  return row;
}

/** Vectors that no row has are left out, as parsers do. */
function sparseOf(rows: readonly Row[]): NamedSparse[] {
  return NAMES.flatMap((name) => {
    if (!rows.some((row) => name in row)) return [];
    const column = sparseColumnOf(rows.length, (row) => {
      const vector = rows[row]![name];
      if (vector === undefined) return undefined;
      return {
        indices: Uint32Array.from(vector.keys()),
        values: Float32Array.from(vector.values()),
      };
    });
    return [{ name, ...column }];
  });
}

function batchWith(rows: readonly Row[], prefix: string): VectorBatch {
  const documents = rows.map((_, i) => ({ i }));
  return { ...batchOf(rowsOf(documents, prefix)), sparse: sparseOf(rows) };
}

function rowOf(segment: Segment, row: number): Row {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const vector = segment.sparseVector(row, name);
      if (vector === undefined) return [];
      const { indices, values } = vector;
      return [[name, new Map(Array.from(indices, (index, i) => [index, values[i]!]))]];
    }),
  );
}

function assertRows(segment: Segment, rows: readonly Row[]): void {
  assert.equal(segment.rowCount, rows.length);
  for (const [i, row] of rows.entries()) assert.deepEqual(rowOf(segment, i), row);
}

function activeSegment(number = 1): Segment {
  return Segment.createActive(activeOptions({ number }));
}

describe('sparse vectors of a segment', () => {
  it('are those that were appended, before and after sealing, in a file and compacted', () => {
    const kind = { activeSegment, randomRow, batchWith, assertRows };
    checkSegmentLife(seedOf('sparse vectors'), kind);
  });

  it('do not change in columns that were handed out before rows were appended', () => {
    const segment = activeSegment();
    segment.append(batchWith([{ words: new Map([[3, 0.5]]) }, {}], 'a'), 0, 2, 1);
    const before = segment.sparseField('words')!.column();
    segment.append(batchWith([{ words: new Map([[5, 2]]) }], 'b'), 0, 1, 2);
    assert.deepEqual([...before.starts], [0, 1, 1]);
    assert.deepEqual([...before.indices], [3]);
    assert.deepEqual([...before.values], [0.5]);
  });

  it('count in the bytes that a segment may have, and in its memory', () => {
    const rows = [
      { words: new Map([[3, 0.5]]) },
      {
        words: new Map([
          [3, 1],
          [4, 1],
        ]),
      },
    ];
    const batch = batchWith(rows, '');
    const { dimension } = activeSegment();
    const textBytes = batch.ids.bytes.length + batch.metadata.bytes.length;
    const bytesMax = textBytes + 2 * 4 * dimension + 3 * 8;
    const create = (bytes: number) => Segment.createActive(activeOptions({ bytesMax: bytes }));
    assert.equal(create(bytesMax).fits(batch, 0), 2);
    assert.equal(create(bytesMax - 1).fits(batch, 0), 1);
    const segment = create(bytesMax);
    segment.append(batch, 0, 2, 1);
    assert.equal(segment.dataBytes, bytesMax);
    const without = Segment.createActive(activeOptions({ bytesMax }));
    without.append({ ...batch, sparse: [] }, 0, 2, 1);
    assert.ok(segment.hostBytes >= without.hostBytes + 3 * 8);
  });

  it('of a damaged file are refused', () => {
    const segment = activeSegment();
    segment.append(
      batchWith(
        [
          {
            words: new Map([
              [3, 1],
              [9, 2],
            ]),
          },
        ],
        'a',
      ),
      0,
      1,
      1,
    );
    segment.seal();
    const data = segment.toData();
    const sparse = data.sparse.map((column) => ({ ...column, starts: Int32Array.of(0, 3) }));
    const { bytes } = encodeSegment({ ...data, sparse });
    assert.throws(() => decodeSegment(bytes, { key: 'k', number: 1 }), { code: 'data_corrupt' });
  });
});

describe('a log record', () => {
  it('has the sparse vectors that rows of its batch have, within the bytes that were foreseen', () => {
    const rows: Row[] = [
      { words: new Map([[3, 0.5]]) },
      {},
      {
        words: new Map([
          [3, 1],
          [4, -1],
        ]),
      },
    ];
    const whole = batchWith([{ words: new Map([[1, 1]]) }, ...rows], '');
    const batch = {
      ...batchWith(rows, ''),
      sparse: whole.sparse!.map((column) => sparseRows(column, 1, 4)),
    };
    const bytes = encodeLogRecord({ kind: 'write', timeMs: 5, batch });
    assert.ok(bytes.length <= recordBytesMax(batch));
    const record = decodeLogRecord(bytes);
    assert.ok(record.kind === 'write');
    const segment = activeSegment();
    segment.append(record.batch, 0, 3, 1);
    assertRows(segment, rows);
  });
});
