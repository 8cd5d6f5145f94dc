// Segments whose records have named vectors, multi-vectors and sparse vectors together: a file has all of them
// in the order that its schema says.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { multiColumnOf } from '../../src/common/multi-column.js';
import { sparseColumnOf } from '../../src/common/sparse-column.js';
import type { VectorBatch } from '../../src/common/types.js';
import { Segment } from '../../src/segment/segment.js';
import { activeOptions, batchOf, encodeSegment, type Random, rowsOf, seedOf } from './sample.js';
import { checkSegmentLife } from './segment-life.js';

/** Of all vectors. */
const DIMENSION = 2;

/** The values of each kind; empty for a record without it. The indices of sparse values are their places. */
interface Row {
  readonly named: readonly number[];
  readonly multi: readonly number[];
  readonly sparse: readonly number[];
}

function randomRow(random: Random): Row {
  const values = (countMax: number) =>
    Array.from({ length: random.below(countMax + 1) }, () => Math.fround(random.next() + 0.1));
  const pairs = (countMax: number) => values(countMax).flatMap((value) => [value, -value]);
  return { named: pairs(1), multi: pairs(4), sparse: values(6) };
}

function batchWith(rows: readonly Row[], prefix: string): VectorBatch {
  const values = rows.flatMap(({ named }) => (named.length === 0 ? [0, 0] : named));
  const multi = multiColumnOf(rows.length, DIMENSION, (row) => {
    return { dimension: DIMENSION, values: Float32Array.from(rows[row]!.multi) };
  });
  const sparse = sparseColumnOf(rows.length, (row) => {
    const own = Float32Array.from(rows[row]!.sparse);
    return { indices: Uint32Array.from(own.keys()), values: own };
  });
  return {
    ...batchOf(
      rowsOf(
        rows.map((_, i) => ({ i })),
        prefix,
      ),
    ),
    named: [
      {
        name: 'title',
        dimension: DIMENSION,
        values: Float32Array.from(values),
        presence: Uint8Array.from(rows, ({ named }) => Math.sign(named.length)),
      },
    ],
    multi: [{ name: 'tokens', ...multi }],
    sparse: [{ name: 'words', ...sparse }],
  };
}

function assertRows(segment: Segment, rows: readonly Row[]): void {
  assert.equal(segment.rowCount, rows.length);
  const found = rows.map((_, row) => ({
    named: [...(segment.namedValues(row, 'title') ?? [])],
    multi: [...(segment.multiVector(row, 'tokens')?.values ?? [])],
    sparse: [...(segment.sparseVector(row, 'words')?.values ?? [])],
  }));
  assert.deepEqual(found, rows);
}

function activeSegment(number = 1): Segment {
  return Segment.createActive(activeOptions({ number }));
}

describe('vectors of all kinds in one segment', () => {
  it('are those that were appended, in a file and compacted too', () => {
    const kind = { activeSegment, randomRow, batchWith, assertRows };
    checkSegmentLife(seedOf('vectors of all kinds'), kind);
  });

  it('are in columns that other programs read', () => {
    const segment = activeSegment();
    const rows = [{ named: [1, 2], multi: [1, 2, 3, 4, 5, 6], sparse: [7] }];
    segment.append(batchWith(rows, ''), 0, 1, 1);
    segment.seal();
    const table = tableFromIPC(encodeSegment(segment.toData()).bytes);
    const valuesOf = (name: string) => JSON.stringify(table.getChild(name)!.get(0));
    assert.equal(valuesOf('vectors.title'), '[1,2]');
    assert.equal(valuesOf('vectors.tokens'), '[[1,2],[3,4],[5,6]]');
    assert.equal(valuesOf('sparse_vectors.words.values'), '[7]');
  });
});
