// Reads the two columns of a sparse vector, lists of indices and of values, as the elements of each row.
// The caller checks the elements.

import { invalidArrow } from './arrow-errors.js';
import { type Column, isValid } from './columns.js';
import { numberReader } from './numbers.js';
import { readSpans } from './offsets.js';
import type { ArrowField, FloatType, IntType } from './schema.js';

const LISTS = ['list', 'large_list', 'list_view', 'large_list_view'];

/** Whether a field can be a column of indices or values: lists of integers or floats of any width. */
export function isElementsField({ type, children, dictionary }: ArrowField): boolean {
  const [element] = children;
  return (
    dictionary === null &&
    LISTS.includes(type.kind) &&
    element !== undefined &&
    element.dictionary === null &&
    (element.type.kind === 'float' || element.type.kind === 'int')
  );
}

/** The cells of a sparse vector. */
export interface SparseCells {
  readonly name: string;
  /** Numbers, and null where an element is null; nothing in a row that is null. */
  readonly indicesAt: (row: number) => (number | null)[];
  readonly valuesAt: (row: number) => (number | null)[];
}

/** @param bytesMax bound on the elements of all rows, which may overlap. Throws `invalid_arrow`. */
export function readElements(column: Column, bytesMax: number): (row: number) => (number | null)[] {
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
