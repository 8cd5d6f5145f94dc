// Columns of vectors: gathering and slicing, compared with plain lists of rows.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countBits, hasBit } from '../../src/common/bitmap.js';
import {
  bytesOfRows,
  type ColumnSpec,
  columnOfVectors,
  gatherBits,
  gatherRows,
  hasVector,
  isSameSpec,
  isSpec,
  itemBytes,
  OWN_MEMORY,
  type RowsOfColumn,
  rowsOfColumn,
  SHARED_MEMORY,
  specOf,
  type VectorColumn,
  valuesOfRows,
  vectorAt,
} from '../../src/common/vectors.js';
import { Random, seedOf } from '../segment/sample.js';
import { columnOf, dense, multi, type RowValues, rowValuesOf, sparse } from '../vector-columns.js';

type Rows = readonly (RowValues | undefined)[];

const SPECS: readonly ColumnSpec[] = [dense(1), dense(3), multi(1), multi(2), sparse];

function randomRow(random: Random, spec: ColumnSpec): RowValues | undefined {
  if (random.next() < 0.4) return undefined;
  const value = () => 1 + random.below(100);
  if (spec.kind === 'sparse') {
    const indices = Array.from({ length: 1 + random.below(3) }, (_, i) => 10 * i + random.below(9));
    return new Map(indices.map((index) => [index, value()]));
  }
  const count = spec.kind === 'multi' ? 1 + random.below(3) : 1;
  return Array.from({ length: count * spec.dimension }, value);
}

function assertRows(column: VectorColumn, spec: ColumnSpec, rows: Rows): void {
  assert.ok(isSameSpec(column, spec));
  const sizes = rows.map((row) => {
    if (spec.kind === 'dense') return 4 * spec.dimension;
    if (row === undefined) return 0;
    return row instanceof Map ? 8 * row.size : 4 * (row as number[]).length;
  });
  for (const [i, row] of rows.entries()) {
    const vector = vectorAt(column, i);
    assert.deepEqual(vector && rowValuesOf(vector), row, `row ${i}`);
    assert.equal(hasVector(column, i), row !== undefined);
    assert.equal(bytesOfRows(column, i, i + 1), sizes[i]);
  }
  const byteCount = sizes.reduce((sum, bytes) => sum + bytes, 0);
  assert.equal(bytesOfRows(column, 0, rows.length), byteCount);
  assert.equal(byteCount % itemBytes(spec), 0);
  if (column.kind !== 'dense') return;
  for (const [i, row] of rows.entries()) {
    if (row === undefined) assert.ok(valuesOfRows(column, i, i + 1).every((value) => value === 0));
  }
  assert.equal(column.presence === null, !rows.includes(undefined));
  if (column.presence !== null) {
    assert.equal(column.presence.length, rows.length);
    assert.equal(countBits(column.presence), rows.filter((row) => row !== undefined).length);
  }
}

describe('columns of vectors', () => {
  it('are gathered from parts of columns, and from rows without one', () => {
    const seed = seedOf('gathered columns');
    for (let round = 0; round < 100; round++) {
      const random = new Random(seed + round);
      for (const spec of SPECS) {
        const parts: RowsOfColumn[] = [];
        const model: (RowValues | undefined)[] = [];
        for (let part = random.below(5); part > 0; part--) {
          const isComplete = random.below(3) === 0;
          const rows = Array.from({ length: random.below(80) }, () => {
            const row = randomRow(random, spec);
            return isComplete ? (row ?? randomRow(new Random(1), spec)) : row;
          });
          const isGap = random.below(4) === 0;
          const column = isGap ? undefined : columnOf('', spec, rows);
          const from = random.below(rows.length + 1);
          const to = from + random.below(rows.length - from + 1);
          parts.push({ column, from, to });
          model.push(...rows.slice(from, to).map((row) => (isGap ? undefined : row)));
        }
        const shared = gatherRows(spec, parts as RowsOfColumn<never>[], SHARED_MEMORY);
        assertRows(shared, spec, model);
        assert.ok(shared.values.buffer instanceof SharedArrayBuffer);
        const own = gatherRows(spec, parts as RowsOfColumn<never>[], OWN_MEMORY);
        assertRows(own, spec, model);
        assert.ok(own.values.buffer instanceof ArrayBuffer);
      }
    }
  });

  it('are copies when they are gathered', () => {
    const source = columnOf('', dense(2), [
      [1, 2],
      [3, 4],
    ]);
    const gathered = gatherRows(dense(2), [{ column: source, from: 0, to: 2 }], OWN_MEMORY);
    source.values.fill(9);
    assert.deepEqual([...gathered.values], [1, 2, 3, 4]);
  });

  it('have views of their rows, with the same items', () => {
    const seed = seedOf('views of columns');
    for (let round = 0; round < 100; round++) {
      const random = new Random(seed + round);
      for (const spec of SPECS) {
        const rows = Array.from({ length: 1 + random.below(100) }, () => randomRow(random, spec));
        const column = columnOf('', spec, rows);
        const from = random.below(rows.length);
        const to = from + random.below(rows.length - from + 1);
        const view = rowsOfColumn(column, from, to);
        assert.equal(view.values.buffer, column.values.buffer);
        const cut = rows.slice(from, to);
        for (const [i, row] of cut.entries()) {
          const vector = vectorAt<VectorColumn>(view, i);
          assert.deepEqual(vector && rowValuesOf(vector), row);
        }
        assert.equal(bytesOfRows(view, 0, cut.length), bytesOfRows(column, from, to));
        // Views of views, and columns gathered from them.
        const whole = { column: view, from: 0, to: cut.length } as unknown as RowsOfColumn<never>;
        assertRows(gatherRows(spec, [whole], OWN_MEMORY), spec, cut);
      }
    }
  });

  it('are built from vectors, including missing ones', () => {
    assertRows(columnOfVectors(dense(2), [Float32Array.of(1, 2), null]), dense(2), [
      [1, 2],
      undefined,
    ]);
    for (const spec of SPECS) {
      assertRows(columnOfVectors(spec, []), spec, []);
      assertRows(columnOfVectors(spec, [undefined, null]), spec, [undefined, undefined]);
    }
  });

  it('are the same if their kinds and dimensions are', () => {
    for (const [i, left] of SPECS.entries()) {
      for (const [j, right] of SPECS.entries()) assert.equal(isSameSpec(left, right), i === j);
      assert.ok(isSpec(left));
      assert.deepEqual(specOf(columnOf('x', left, [])), left);
    }
    for (const found of [
      {},
      { kind: 'other', dimension: 1 },
      { kind: 'dense' },
      { kind: 'dense', dimension: 0 },
      { kind: 'multi', dimension: 1.5 },
    ]) {
      assert.equal(isSpec(found), false, JSON.stringify(found));
    }
  });
});

describe('gathered bits', () => {
  it('are those of the parts, at any alignment', () => {
    for (const shift of [0, 1, 31, 32, 33]) {
      for (const count of [1, 31, 32, 33, 64, 65]) {
        const rows = Array.from({ length: shift + count + 40 }, (_, i) =>
          i % 3 === 0 ? [i] : undefined,
        );
        const { presence } = columnOf('', dense(1), rows);
        const parts = [
          { bits: null, from: 0, to: 2 },
          { bits: presence, from: shift, to: shift + count },
          { bits: null, from: 7, to: 8 },
        ];
        const gathered = gatherBits(parts, count + 3);
        const expected = [true, true, ...rows.slice(shift, shift + count).map(Boolean), true];
        assert.deepEqual(
          expected.map((_, row) => hasBit(gathered, row)),
          expected,
        );
        assert.equal(countBits(gathered), expected.filter(Boolean).length);
      }
    }
  });
});
