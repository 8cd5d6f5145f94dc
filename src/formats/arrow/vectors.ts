// Reads and writes columns of dense vectors. Vectors are read as row-major float32, in place if they are stored that
// way and otherwise converted from any list of numbers. A row that is not a valid vector becomes an issue.

import { type Bitmap, createBitmap, setBit } from '../../common/bitmap.js';
import { float16Table, unpackElements } from '../../common/elements.js';
import { type DenseColumn, type DenseSpec, specOf, UNNAMED } from '../../common/vectors.js';
import { invalidArrow } from './arrow-errors.js';
import type { ArrowKind } from './arrow-kind.js';
import { type ArrowColumn, isValid } from './columns.js';
import { type NarrowIntegers, narrowIntegers } from './numbers.js';
import { readSpans } from './offsets.js';
import type { RowIssue, RowIssues } from './row-issues.js';
import { type ArrowField, describeType, type IntType, isListOfAnyLength } from './schema.js';

type Elements = Float32Array | Float64Array | NarrowIntegers;

/** Whether the field can hold vectors: lists of floats, of integers up to 32 bits, or of booleans. */
export function isVectorField(field: ArrowField): boolean {
  const { type, children, dictionary } = field;
  const element = children[0];
  return (
    (isListOfAnyLength(field) || (dictionary === null && type.kind === 'fixed_size_list')) &&
    element !== undefined &&
    element.dictionary === null &&
    (element.type.kind === 'float' ||
      element.type.kind === 'bool' ||
      (element.type.kind === 'int' && element.type.bitWidth < 64))
  );
}

/** Columns of lists of numbers, `vectors.<name>`. */
export const DENSE_COLUMNS: ArrowKind<DenseSpec, DenseColumn, DenseColumn> = {
  member: 'vectors',
  parts: [''],
  what: 'a named vector',
  expected: 'lists of numbers',
  isField: isVectorField,
  read: ([column], toRead) => ({
    ...specOf(toRead),
    values: readVectors(column!, toRead),
    presence: toRead.mayBeNull ? presenceOf(column!) : null,
  }),
  isNullable: true,
  types: ({ dimension, element }) => [{ vectorOf: dimension, element }],
  write: ({ values, presence, element }) => [{ vectors: values, presence, element }],
};

/** Returns the rows that are not null; null for all rows. */
function presenceOf({ length, validity }: ArrowColumn): Bitmap | null {
  if (validity === null) return null;
  const presence = createBitmap(length);
  for (let row = 0; row < length; row++) if (isValid(validity, row)) setBit(presence, row);
  return presence;
}

/** How to read dense vectors. */
export interface DenseToRead {
  /** The name of the vector in issues; the unnamed vector by default. */
  readonly name?: string;
  readonly dimension: number;
  /** Limit for the result. */
  readonly bytesMax: number;
  readonly issues: RowIssues;
  /** Whether rows may be null; they are then read as zeros. */
  readonly mayBeNull?: boolean;
  /** Whether the content is defined for rows without issues, whatever is wrong with others. */
  readonly keepsGoodRows?: boolean;
}

/**
 * Returns row-major [length, dimension] float32, all finite. With issues the content is undefined, unless good rows are
 * kept. Throws `invalid_arrow`.
 */
export function readVectors(column: ArrowColumn, toRead: DenseToRead): Float32Array {
  const { dimension, bytesMax, issues, keepsGoodRows = false } = toRead;
  if (!isVectorField(column.field)) {
    throw invalidArrow(`a column of ${describeType(column.field)}`, {
      expected: 'lists of numbers',
    });
  }
  const { length } = column;
  const starts = length === 0 ? null : readStarts(column, toRead);
  if (starts === null) return new Float32Array(0);
  if (length * dimension * 4 > bytesMax) {
    throw invalidArrow(`${length} vectors of ${dimension} elements`, {
      advice: 'Send smaller batches.',
    });
  }
  const elements = column.children[0]!;
  checkElements(elements, starts, toRead);
  if (issues.items.length > 0 && !keepsGoodRows) return new Float32Array(0);
  const source = elementsOf(elements);
  const values = narrow(source, starts, dimension, isHalf(elements));
  for (let row = 0; row < length && !issues.isFull; row++) {
    const index = findNotFinite(values.subarray(row * dimension));
    if (index < 0) break;
    row += Math.floor(index / dimension);
    const element = index % dimension;
    const isNan = Number.isNaN(values[row * dimension + element]!);
    const found = isNan ? 'NaN' : 'infinite or beyond the range of float32 (3.4028235e38)';
    issues.add({
      row,
      member: memberOf(toRead),
      code: 'invalid_vector',
      detail: `Element ${element} is ${found}.`,
    });
  }
  return values;
}

function memberOf({ name = UNNAMED }: DenseToRead): RowIssue['member'] {
  return name === UNNAMED ? 'values' : `vectors.${name}`;
}

/** The start of a row that is null or invalid. */
const ABSENT = -1;

/** Returns where the elements of each row start; null if there are issues. */
function readStarts(column: ArrowColumn, toRead: DenseToRead): Int32Array | null {
  const { length, validity, field } = column;
  const { dimension, issues, name = UNNAMED, mayBeNull = false, keepsGoodRows = false } = toRead;
  const member = memberOf(toRead);
  const whose = name === UNNAMED ? "the collection's dimension" : `the dimension of "${name}"`;
  const { type } = field;
  const isFixed = type.kind === 'fixed_size_list';
  const spans = isFixed ? null : readSpans(column);
  const mayBeAbsent = mayBeNull || keepsGoodRows;
  // The offsets belong to the column, so they are copied if rows are to be marked.
  const offsets = spans?.starts.subarray(0, length) ?? new Int32Array(length);
  const starts = mayBeAbsent ? offsets.slice() : offsets;
  const issuesBefore = issues.items.length;
  for (let row = 0; row < length && !issues.isFull; row++) {
    if (!isValid(validity, row)) {
      if (mayBeNull) {
        starts[row] = ABSENT;
        continue;
      }
      const detail = 'Expected a list of numbers; found null.';
      issues.add({ row, member, code: 'invalid_vector', detail });
      if (mayBeAbsent) starts[row] = ABSENT;
      continue;
    }
    const found =
      spans === null ? (type as { listSize: number }).listSize : spans.ends[row]! - starts[row]!;
    if (found !== dimension) {
      const detail = `The vector has ${found} elements; ${whose} is ${dimension}.`;
      const rest = { detail, expected: dimension, actual: found };
      issues.add({ row, member, code: 'dimension_mismatch', ...rest });
      // All rows of the column have the same length.
      if (isFixed && !keepsGoodRows) break;
      if (mayBeAbsent) starts[row] = ABSENT;
      continue;
    }
    if (isFixed) starts[row] = row * dimension;
  }
  return issues.items.length > issuesBefore && !keepsGoodRows ? null : starts;
}

function checkElements({ validity }: ArrowColumn, starts: Int32Array, toRead: DenseToRead): void {
  if (validity === null) return;
  const { dimension, issues } = toRead;
  for (let row = 0; row < starts.length && !issues.isFull; row++) {
    const start = starts[row]!;
    for (let i = 0; start !== ABSENT && i < dimension; i++) {
      if (isValid(validity, start + i)) continue;
      const detail = `Element ${i} is null, not a number.`;
      issues.add({ row, member: memberOf(toRead), code: 'invalid_vector', detail });
      if (toRead.keepsGoodRows) starts[row] = ABSENT;
      break;
    }
  }
}

function isHalf({ field: { type } }: ArrowColumn): boolean {
  return type.kind === 'float' && type.bitWidth === 16;
}

function elementsOf(column: ArrowColumn): Elements {
  const { length, field } = column;
  const { type } = field;
  if (type.kind === 'float') {
    if (type.bitWidth === 32) return column.buffer(0, Float32Array, length);
    if (type.bitWidth === 64) return column.buffer(0, Float64Array, length);
    return column.buffer(0, Uint16Array, length);
  }
  if (type.kind === 'bool') {
    return unpackElements('bit', length, (_, count) => column.buffer(0, Uint8Array, count));
  }
  return narrowIntegers(column, type as IntType);
}

/** Returns the values as float32, in place if they are contiguous float32, with zeros for absent rows. */
function narrow(
  source: Elements,
  starts: Int32Array,
  dimension: number,
  isHalf: boolean,
): Float32Array {
  const first = starts[0]!;
  const count = starts.length * dimension;
  const isContiguous =
    first !== ABSENT && starts.every((start, row) => start === first + row * dimension);
  if (isContiguous) {
    const elements = source.subarray(first, first + count);
    if (elements instanceof Float32Array) return elements;
    const values = new Float32Array(count);
    narrowInto(values, elements, isHalf);
    return values;
  }
  const values = new Float32Array(count);
  starts.forEach((start, row) => {
    if (start === ABSENT) return;
    const target = values.subarray(row * dimension, (row + 1) * dimension);
    narrowInto(target, source.subarray(start, start + dimension), isHalf);
  });
  return values;
}

function narrowInto(target: Float32Array, elements: Elements, isHalf: boolean): void {
  if (!isHalf) {
    target.set(elements);
    return;
  }
  const table = float16Table();
  for (let i = 0; i < elements.length; i++) target[i] = table[elements[i]!]!;
}

/** Elements per check: large enough that the branch costs little, and small enough for a short search in a block. */
const BLOCK = 4_096;

/** Returns the index of the first NaN or infinity, or -1. */
export function findNotFinite(values: Float32Array): number {
  for (let start = 0; start < values.length; start += BLOCK) {
    const end = Math.min(start + BLOCK, values.length);
    if (isBlockFinite(values, start, end)) continue;
    for (let i = start; i < end; i++) if (!Number.isFinite(values[i])) return i;
  }
  return -1;
}

/** A finite number times 0 is 0; anything else is NaN, and so is the sum. Four sums keep the additions independent. */
function isBlockFinite(values: Float32Array, start: number, end: number): boolean {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = start;
  for (; i + 4 <= end; i += 4) {
    a += values[i]! * 0;
    b += values[i + 1]! * 0;
    c += values[i + 2]! * 0;
    d += values[i + 3]! * 0;
  }
  for (; i < end; i++) a += values[i]! * 0;
  return a + b + c + d === 0;
}
