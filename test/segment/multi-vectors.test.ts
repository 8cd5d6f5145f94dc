// Multi-vectors of segments: through appends, sealing, files, compaction and log records.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { hasBit } from '../../src/common/bitmap.js';
import { multiColumnOf, multiRows } from '../../src/common/multi-column.js';
import type { NamedMulti, VectorBatch } from '../../src/common/types.js';
import { decodeLogRecord, encodeLogRecord, recordBytesMax } from '../../src/segment/log-record.js';
import { Segment } from '../../src/segment/segment.js';
import { activeOptions, batchOf, encodeSegment, type Random, rowsOf, seedOf } from './sample.js';
import { checkSegmentLife } from './segment-life.js';

const MULTI = new Map([
  ['tokens', 3],
  ['patches', 2],
]);

/** The values of all vectors of one row, by name. */
type Row = Readonly<Record<string, readonly number[]>>;

function randomRow(random: Random): Row {
  const row: Record<string, readonly number[]> = {};
  for (const [name, dimension] of MULTI) {
    if (random.next() < 0.4) continue;
    const valueCount = dimension * (1 + random.below(4));
    row[name] = Array.from({ length: valueCount }, () => Math.fround(random.next() - 0.5));
  }
  return row;
}

/** Multi-vectors that no row has are left out, as parsers do. */
function multiOf(rows: readonly Row[]): NamedMulti[] {
  return [...MULTI].flatMap(([name, dimension]) => {
    if (!rows.some((row) => name in row)) return [];
    const column = multiColumnOf(rows.length, dimension, (row) => {
      const values = rows[row]![name];
      return values && { dimension, values: Float32Array.from(values) };
    });
    return [{ name, ...column }];
  });
}

function batchWith(rows: readonly Row[], prefix: string): VectorBatch {
  const documents = rows.map((_, i) => ({ i }));
  return { ...batchOf(rowsOf(documents, prefix)), multi: multiOf(rows) };
}

function rowOf(segment: Segment, row: number): Row {
  const found: Record<string, readonly number[]> = {};
  for (const [name, dimension] of MULTI) {
    const vector = segment.multiVector(row, name);
    if (vector === undefined) continue;
    assert.equal(vector.dimension, dimension);
    found[name] = [...vector.values];
  }
  return found;
}

function assertMulti(segment: Segment, rows: readonly Row[]): void {
  assert.deepEqual(
    rows.map((_, row) => rowOf(segment, row)),
    rows,
  );
  for (const name of MULTI.keys()) {
    const visible = { rowCount: rows.length, rows: null, visibleCount: rows.length };
    const having = segment.withMulti(name, visible);
    assert.equal(having.visibleCount, rows.filter((row) => name in row).length);
    for (const [i, row] of rows.entries()) assert.equal(hasBit(having.rows!, i), name in row);
  }
}

function activeSegment(number = 1): Segment {
  return Segment.createActive(activeOptions({ number }));
}

describe('multi-vectors of a segment', () => {
  it('are those that were appended, before and after sealing, in a file and compacted', () => {
    const kind = { activeSegment, randomRow, batchWith, assertRows: assertMulti };
    checkSegmentLife(seedOf('multi-vectors'), kind);
  });

  it('are lists of vectors in a file, which other programs read', () => {
    const segment = activeSegment();
    segment.append(batchWith([{ tokens: [1, 2, 3, 4, 5, 6] }, {}], ''), 0, 2, 1);
    segment.seal();
    const column = tableFromIPC(encodeSegment(segment.toData()).bytes).getChild('vectors.tokens')!;
    const plain = [...column].map((list: Iterable<Iterable<number>> | null) => {
      return list && [...list].map((vector) => [...vector]);
    });
    assert.deepEqual(plain, [
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      null,
    ]);
    assert.equal(String(column.type), 'List<FixedSizeList[3]<Float32>>');
  });

  it('count in the bytes that a segment may have, and in its memory', () => {
    const batch = batchWith([{ tokens: [1, 2, 3, 4, 5, 6] }, { tokens: [1, 2, 3] }], '');
    const textBytes = batch.ids.bytes.length + batch.metadata.bytes.length;
    const bytesMax = textBytes + 2 * 2 * 4 + 9 * 4;
    const create = (bytes: number) => Segment.createActive(activeOptions({ bytesMax: bytes }));
    assert.equal(create(bytesMax).fits(batch, 0), 2);
    assert.equal(create(bytesMax - 1).fits(batch, 0), 1);
    const segment = create(bytesMax);
    segment.append(batch, 0, 2, 1);
    assert.equal(segment.dataBytes, bytesMax);
    const without = Segment.createActive(activeOptions({ bytesMax }));
    without.append({ ...batch, multi: [] }, 0, 2, 1);
    assert.ok(segment.hostBytes >= without.hostBytes + 9 * 4);
  });

  it('do not change in columns that were handed out before rows were appended', () => {
    const segment = activeSegment();
    segment.append(batchWith([{ tokens: [1, 2, 3] }], 'a'), 0, 1, 1);
    const before = segment.multiColumn('tokens')!;
    segment.append(batchWith([{ tokens: [4, 5, 6, 7, 8, 9] }, {}], 'b'), 0, 2, 2);
    assert.deepEqual(
      [[...before.starts], [...before.values]],
      [
        [0, 1],
        [1, 2, 3],
      ],
    );
    assert.deepEqual([...segment.multiColumn('tokens')!.starts], [0, 1, 3, 3]);
  });
});

describe('a log record', () => {
  it('has the multi-vectors of its rows, also of a part of a batch', () => {
    const rows: Row[] = [
      { tokens: [1, 2, 3] },
      {},
      { tokens: [4, 5, 6, 7, 8, 9], patches: [1, 2] },
    ];
    const whole = batchWith(rows, '');
    for (const multi of [
      whole.multi!,
      multiOf([...rows, {}]).map((column) => multiRows(column, 0, 3)),
    ]) {
      const batch = { ...whole, multi };
      const bytes = encodeLogRecord({ kind: 'write', timeMs: 5, batch });
      assert.ok(bytes.length <= recordBytesMax(batch));
      const record = decodeLogRecord(bytes);
      assert.ok(record.kind === 'write');
      const segment = activeSegment();
      segment.append(record.batch, 0, 3, 1);
      assertMulti(segment, rows);
    }
    const last = {
      ...whole,
      ...batchOf(rowsOf([{}], 'x')),
      multi: whole.multi!.map((column) => multiRows(column, 2, 3)),
    };
    const record = decodeLogRecord(encodeLogRecord({ kind: 'write', timeMs: 5, batch: last }));
    assert.ok(record.kind === 'write');
    const segment = activeSegment();
    segment.append(record.batch, 0, 1, 1);
    assertMulti(segment, rows.slice(2));
  });
});
