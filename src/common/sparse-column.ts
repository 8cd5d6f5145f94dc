// Columns of sparse vectors from single ones, and parts of columns.

import { sharedFloat32, sharedInt32, sharedUint32 } from './shared-array.js';
import type { SparseColumn, SparseVector } from './types.js';

/** In shared memory. @param vectorAt undefined for a row without the vector. */
export function sparseColumnOf(
  rowCount: number,
  vectorAt: (row: number) => SparseVector | undefined,
): SparseColumn {
  const starts = sharedInt32(rowCount + 1);
  for (let row = 0; row < rowCount; row++) {
    starts[row + 1] = starts[row]! + (vectorAt(row)?.indices.length ?? 0);
  }
  const elementCount = starts[rowCount]!;
  const indices = sharedUint32(elementCount);
  const values = sharedFloat32(elementCount);
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
