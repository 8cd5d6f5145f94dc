// Columns of multi-vectors from those of single rows, and parts of columns.

import { sharedFloat32, sharedInt32 } from './shared-array.js';
import type { MultiColumn, MultiVector } from './types.js';

/** In shared memory. @param vectorAt undefined for a row without the multi-vector. */
export function multiColumnOf(
  rowCount: number,
  dimension: number,
  vectorAt: (row: number) => MultiVector | undefined,
): MultiColumn {
  const starts = sharedInt32(rowCount + 1);
  for (let row = 0; row < rowCount; row++) {
    const valueCount = vectorAt(row)?.values.length ?? 0;
    starts[row + 1] = starts[row]! + valueCount / dimension;
  }
  const values = sharedFloat32(starts[rowCount]! * dimension);
  for (let row = 0; row < rowCount; row++) {
    const vector = vectorAt(row);
    if (vector !== undefined) values.set(vector.values, starts[row]! * dimension);
  }
  return { dimension, starts, values };
}

/** A view of the rows from..to. */
export function multiRows<Column extends MultiColumn>(
  column: Column,
  from: number,
  to: number,
): Column {
  return { ...column, starts: column.starts.subarray(from, to + 1) };
}

/** The values of the rows from..to. */
export function valuesOfRows(
  { dimension, starts, values }: MultiColumn,
  from: number,
  to: number,
): Float32Array {
  return values.subarray(starts[from]! * dimension, starts[to]! * dimension);
}
