// Sparse vectors as Arrow columns: `sparse_vectors.<name>.indices` and `sparse_vectors.<name>.values`, lists of equal
// lengths, empty in rows without the vector.

import type { FieldToWrite } from './ipc-writer.js';

/** Of every column of sparse vectors. */
export const SPARSE_PREFIX = 'sparse_vectors.';

export const indicesName = (name: string) => `${SPARSE_PREFIX}${name}.indices`;
export const valuesName = (name: string) => `${SPARSE_PREFIX}${name}.values`;

/** Two fields for each vector. */
export function sparseFields(names: readonly string[]): FieldToWrite[] {
  return names.flatMap((name): FieldToWrite[] => [
    { name: indicesName(name), type: { listOf: 'uint32' } },
    { name: valuesName(name), type: { listOf: 'float32' } },
  ]);
}
