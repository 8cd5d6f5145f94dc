// Builds columns of vectors from the rows of a test, in unshared memory as parsers do.

import type { ElementType } from '../src/common/elements.js';
import {
  type ColumnOf,
  type ColumnSpec,
  columnOfVectors,
  gatherRows,
  type Named,
  OWN_MEMORY,
  type Vector,
} from '../src/common/vectors.js';

/** The values of a dense vector, of the vectors of a list in sequence, or of a sparse vector by index. */
export type RowValues = readonly number[] | ReadonlyMap<number, number>;

type RowVector = RowValues | Vector | null | undefined;

export function dense<Dimension extends number>(dimension: Dimension, element?: ElementType) {
  return { kind: 'dense', dimension, ...(element && { element }) } as const;
}

export function multi<Dimension extends number>(dimension: Dimension) {
  return { kind: 'multi', dimension } as const;
}

export const sparse = { kind: 'sparse' } as const;

function vectorOf(spec: ColumnSpec, values: RowValues): Vector {
  if (values instanceof Map) {
    return {
      indices: Uint32Array.from(values.keys()),
      values: Float32Array.from(values.values()),
    };
  }
  const all = Float32Array.from(values as readonly number[]);
  return spec.kind === 'multi' ? { dimension: spec.dimension, values: all } : all;
}

export function rowValuesOf(vector: Vector): RowValues {
  if (vector instanceof Float32Array) return [...vector];
  if (!('indices' in vector)) return [...vector.values];
  const { indices, values } = vector;
  return new Map(Array.from(indices, (index, i) => [index, values[i]!]));
}

/** Builds a column from rows. Undefined or null stands for a row without the vector. */
export function columnOf<Spec extends ColumnSpec>(
  name: string,
  spec: Spec,
  rows: readonly RowVector[],
): Named<ColumnOf<Spec>> {
  const vectors = rows.map((row) => {
    return row instanceof Map || Array.isArray(row) ? vectorOf(spec, row) : (row as Vector | null);
  });
  const column = columnOfVectors(spec, vectors);
  const own = gatherRows(spec, [{ column, from: 0, to: rows.length }], OWN_MEMORY);
  return { name, ...own };
}

/** Builds the columns of all vectors that occur in at least one row. */
export function columnsOf(
  specs: Readonly<Record<string, ColumnSpec>>,
  rows: readonly Readonly<Record<string, RowVector>>[],
): Named[] {
  return Object.entries(specs).flatMap(([name, spec]) => {
    const vectors = rows.map((row) => row[name]);
    return vectors.every((vector) => vector == null) ? [] : [columnOf(name, spec, vectors)];
  });
}
