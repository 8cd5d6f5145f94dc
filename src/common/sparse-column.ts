// Columns of sparse vectors from single ones, and parts of columns.

import type { SparseColumn, SparseVector } from './types.js';

/** In shared memory. @param vectorAt undefined for a row without the vector. */
export function sparseColumnOf(
  rowCount: number,
  vectorAt: (row: number) => SparseVector | undefined,
): SparseColumn {
  const starts = new Int32Array(new SharedArrayBuffer(4 * (rowCount + 1)));
  for (let row = 0; row < rowCount; row++) {
    starts[row + 1] = starts[row]! + (vectorAt(row)?.indices.length ?? 0);
  }
  const elementCount = starts[rowCount]!;
  const indices = new Uint32Array(new SharedArrayBuffer(4 * elementCount));
  const values = new Float32Array(new SharedArrayBuffer(4 * elementCount));
  for (let row = 0; row < rowCount; row++) {
    const vector = vectorAt(row);
    if (vector === undefined) continue;
    indices.set(vector.indices, starts[row]!);
    values.set(vector.values, starts[row]!);
  }
  return { starts, indices, values };
}

/** A view of the rows from..to. */
export function sparseRows<Column extends SparseColumn>(
  column: Column,
  from: number,
  to: number,
): Column {
  return { ...column, starts: column.starts.subarray(from, to + 1) };
}
