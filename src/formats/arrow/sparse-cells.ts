// Reads and writes the two columns of sparse vectors: lists of indices and lists of values of equal lengths, empty in
// rows without the vector. The caller checks the elements that were read.

import type { ColumnSpec, SparseColumn } from '../../common/vectors.js';
import { invalidArrow } from './arrow-errors.js';
import type { ArrowKind } from './arrow-kind.js';
import { type ArrowColumn, isValid } from './columns.js';
import { numberReader } from './numbers.js';
import { readSpans } from './offsets.js';
import { type ArrowField, type FloatType, type IntType, isListOfAnyLength } from './schema.js';

/** Sparse vectors as received. */
export interface SparseCells {
  readonly kind: 'sparse';
  /** Returns numbers, and null for elements that are null; nothing for a row that is null. */
  readonly indicesAt: (row: number) => (number | null)[];
  readonly valuesAt: (row: number) => (number | null)[];
}

/** Columns of lists of numbers, `sparse_vectors.<name>.indices` and `sparse_vectors.<name>.values`. */
export const SPARSE_COLUMNS: ArrowKind<ColumnSpec, SparseCells, SparseColumn> = {
  member: 'sparse_vectors',
  parts: ['indices', 'values'],
  what: 'a sparse vector',
  expected: 'lists of numbers, of any lengths',
  isField: isElementsField,
  read: ([indices, values], { bytesMax }) => ({
    kind: 'sparse',
    indicesAt: readElements(indices!, bytesMax),
    valuesAt: readElements(values!, bytesMax),
  }),
  isNullable: false,
  types: () => [{ listOf: 'uint32' }, { listOf: 'float32' }],
  write: ({ starts, indices, values }) => [
    { starts, elements: indices },
    { starts, elements: values },
  ],
};

/** Whether the field can hold indices or values: lists of integers or floats of any width. */
function isElementsField(field: ArrowField): boolean {
  const [element] = field.children;
  return (
    isListOfAnyLength(field) &&
    element !== undefined &&
    element.dictionary === null &&
    (element.type.kind === 'float' || element.type.kind === 'int')
  );
}

/**
 * Throws `invalid_arrow`.
 * @param bytesMax limit for the elements of all rows, which may overlap.
 */
function readElements(column: ArrowColumn, bytesMax: number): (row: number) => (number | null)[] {
  const { starts, ends } = readSpans(column);
  const elements = column.children[0]!;
  const read = numberReader(elements, elements.field.type as IntType | FloatType);
  let elementCount = 0;
  for (let row = 0; row < column.length; row++) {
    if (isValid(column.validity, row)) elementCount += ends[row]! - starts[row]!;
  }
  if (elementCount * Float32Array.BYTES_PER_ELEMENT > bytesMax) {
    throw invalidArrow(`${elementCount} elements of sparse vectors`, {
      advice: 'Send smaller batches.',
    });
  }
  return (row) => {
    if (!isValid(column.validity, row)) return [];
    const found: (number | null)[] = [];
    for (let i = starts[row]!; i < ends[row]!; i++) {
      found.push(isValid(elements.validity, i) ? read(i) : null);
    }
    return found;
  };
}
