// Reads the two columns of a sparse vector, lists of indices and of values, as the elements of each row.
// The caller checks the elements.

import type { ColumnSpec } from '../../common/vectors.js';
import { invalidArrow } from './arrow-errors.js';
import type { ArrowKind } from './arrow-kind.js';
import { type Column, isValid } from './columns.js';
import { numberReader } from './numbers.js';
import { readSpans } from './offsets.js';
import { type ArrowField, type FloatType, type IntType, isListOfAnyLength } from './schema.js';
import { SPARSE_PREFIX } from './sparse-fields.js';

/** Sparse vectors as they were sent. */
export interface SparseCells {
  readonly kind: 'sparse';
  /** Numbers, and null where an element is null; nothing in a row that is null. */
  readonly indicesAt: (row: number) => (number | null)[];
  readonly valuesAt: (row: number) => (number | null)[];
}

/** Columns of lists of numbers, `sparse_vectors.<name>.indices` and `sparse_vectors.<name>.values`. */
export const sparseVectors: ArrowKind<ColumnSpec, SparseCells> = {
  prefix: SPARSE_PREFIX,
  suffixes: ['.indices', '.values'],
  what: 'a sparse vector',
  expected: 'lists of numbers, of any lengths',
  isField: isElementsField,
  read: ([indices, values], { bytesMax }) => ({
    kind: 'sparse',
    indicesAt: readElements(indices!, bytesMax),
    valuesAt: readElements(values!, bytesMax),
  }),
};

/** Whether a field can be a column of indices or values: lists of integers or floats of any width. */
function isElementsField(field: ArrowField): boolean {
  const [element] = field.children;
  return (
    isListOfAnyLength(field) &&
    element !== undefined &&
    element.dictionary === null &&
    (element.type.kind === 'float' || element.type.kind === 'int')
  );
}

/** @param bytesMax bound on the elements of all rows, which may overlap. Throws `invalid_arrow`. */
function readElements(column: Column, bytesMax: number): (row: number) => (number | null)[] {
  const { starts, ends } = readSpans(column);
  const elements = column.children[0]!;
  const read = numberReader(elements, elements.field.type as IntType | FloatType);
  let elementCount = 0;
  for (let row = 0; row < column.length; row++) {
    if (isValid(column.validity, row)) elementCount += ends[row]! - starts[row]!;
  }
  if (elementCount * Float32Array.BYTES_PER_ELEMENT > bytesMax) {
    throw invalidArrow(`${elementCount} elements of sparse vectors; send smaller batches`);
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
