// Evaluates one condition over its columns: follows the operator's plan by the fastest loop.

import { type Bitmap, clearBit, countBits, nextSetBit, setBit } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { foldStrings } from '../common/fold-case.js';
import type { Utf8Column } from '../common/types.js';
import { EMPTY_COLUMN, type IsStopped, type NarrowByElements, unsetFrom } from './column-plans.js';
import { findString } from './dictionary.js';
import { type FilterTest, ID_PATH, type TestOperator } from './filter-node.js';
import {
  answerExactly,
  BY_VALUE,
  createRange,
  intersectRanges,
  type Lookup,
  type RangeOperator,
} from './lookup.js';
import { OPERATORS } from './operators.js';
import {
  keepKinds,
  keepListed,
  keepMixed,
  keepNumbers,
  keepString,
  keepStrings,
  type RowTest,
} from './row-loops.js';

interface Evaluation {
  /** Checked between strings; after it, the result is wrong and not used. */
  readonly isStopped: IsStopped;
  readonly narrowByElements: NarrowByElements;
}

/**
 * Clears the rows that do not satisfy the test; `columns` are those of its paths. Rows past the end of a column are
 * missing.
 */
export function narrowByColumns(
  rows: Bitmap,
  test: FilterTest,
  columns: readonly MetadataColumn[],
  evaluation: Evaluation,
): void {
  if (isStringEquality(test, columns[0])) narrowToString(rows, test.operand, columns[0]);
  else narrowByOperator(rows, test, columns, evaluation);
}

function narrowByOperator<Name extends TestOperator>(
  rows: Bitmap,
  { operator, operand, ignoresCase }: FilterTest<Name>,
  columns: readonly MetadataColumn[],
  { isStopped, narrowByElements }: Evaluation,
): void {
  const { overColumns } = OPERATORS[operator];
  const read = ignoresCase === true ? columns.map(foldColumn) : columns;
  if ('narrow' in overColumns) {
    overColumns.narrow(rows, operand, read, narrowByElements);
  } else {
    narrowByRowTest(rows, overColumns.plan(operand, read[0], isStopped), columns[0]);
  }
}

/** Whether the test compares with a string that has one code in the column. */
function isStringEquality(
  test: FilterTest,
  { items }: MetadataColumn,
): test is FilterTest<'$eq'> & { readonly operand: string } {
  const { operator, operand, path, ignoresCase } = test;
  const isString = operator === '$eq' && typeof operand === 'string' && ignoresCase !== true;
  return isString && items === null && path !== ID_PATH;
}

/** The column with strings that compare without case. Entries of the dictionaries may repeat. */
function foldColumn(column: MetadataColumn): MetadataColumn {
  const { dictionary, dictionaryCount, items } = column;
  return {
    ...column,
    dictionary: dictionary && foldStrings(dictionary, dictionaryCount),
    items: items && { ...items, elements: foldColumn(items.elements) },
  };
}

/**
 * A column of the ids of rows. Entries of its dictionary may repeat: a segment keeps a row of each version of a vector
 * until it is compacted.
 */
export function createIdColumn(ids: Utf8Column, rowCount: number): MetadataColumn {
  const codes = new Int32Array(rowCount);
  for (let row = 0; row < rowCount; row++) codes[row] = row;
  return {
    ...EMPTY_COLUMN,
    kinds: new Uint8Array(rowCount).fill(KIND.string),
    codes,
    dictionary: ids,
    dictionaryCount: rowCount,
  };
}

/** Clears the rows that do not satisfy all of the ranges, which are evaluated together. */
export function narrowByRanges(
  rows: Bitmap,
  tests: readonly FilterTest<RangeOperator>[],
  column: MetadataColumn,
): void {
  const lookup = tests
    .map(({ operator, operand }) => createRange(operator, operand, column))
    .reduce(intersectRanges);
  narrowByRowTest(rows, { lookup, elementTest: null }, column);
}

function narrowByRowTest(rows: Bitmap, rowTest: RowTest, column: MetadataColumn): void {
  const { byKind, numbers: listed, byCode } = rowTest.lookup;
  const { kinds, numbers, codes, items } = column;
  const end = Math.min(rows.length, kinds.length);
  if (byKind[KIND.missing] === 0) unsetFrom(rows, end);
  if (!byKind.includes(BY_VALUE)) {
    keepKinds(rows, end, kinds, byKind);
  } else if (numbers !== null && decidesOnly(byKind, KIND.number)) {
    // Later rows have no numbers.
    const numbersEnd = Math.min(end, numbers.length);
    unsetFrom(rows, numbersEnd);
    keepNumbers(rows, numbersEnd, { kinds, numbers }, rowTest.lookup);
    if (listed !== null) keepListed(rows, numbers, listed);
    keepExact(rows, column, rowTest.lookup);
  } else if (rowTest.elementTest?.foundMin === 1 && items !== null && isDense(rows)) {
    narrowByElements(rows, rowTest.lookup, rowTest.elementTest.lookup, { ...column, items });
  } else if (codes !== null && decidesOnly(byKind, KIND.string)) {
    const codesEnd = Math.min(end, codes.length);
    unsetFrom(rows, codesEnd);
    keepStrings(rows, codesEnd, { kinds, codes }, byCode);
  } else {
    keepMixed(rows, end, column, rowTest);
  }
}

/** Clears the rows whose numbers pass as float64, but not by their value. */
function keepExact(rows: Bitmap, column: MetadataColumn, lookup: Lookup): void {
  if (lookup.exact === null) return;
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    if (answerExactly(lookup, column, row, 1) === 0) clearBit(rows, row);
  }
}

/** For tests that an array passes if one element passes `byElement`; other rows must pass `lookup`. */
function narrowByElements(
  rows: Bitmap,
  lookup: Lookup,
  byElement: Lookup,
  column: MetadataColumn & { readonly items: Items },
): void {
  const { items } = column;
  const elements = elementsOfRows(items, rows.length);
  narrowByRowTest(elements, { lookup: byElement, elementTest: null }, items.elements);
  const arrays = rowsOfElements(items, elements, rows.length);
  const others = { length: rows.length, words: rows.words.slice() };
  const byKind = lookup.byKind.with(KIND.array, 0);
  narrowByRowTest(others, { lookup: { ...lookup, byKind }, elementTest: null }, column);
  for (let i = 0; i < rows.words.length; i++) rows.words[i] &= arrays.words[i] | others.words[i];
}

/** Whether so many rows are left that testing all elements is faster than testing row by row. */
function isDense(rows: Bitmap): boolean {
  return countBits(rows) * DENSE_SHARE >= rows.length;
}

const DENSE_SHARE = 16;

/** The most common test: it needs no table by dictionary code. */
function narrowToString(rows: Bitmap, string: string, column: MetadataColumn): void {
  const { kinds, codes, dictionary, dictionaryCount } = column;
  const code =
    dictionary === null ? -1 : findString(dictionary, dictionaryCount, Buffer.from(string));
  const end = code < 0 || codes === null ? 0 : Math.min(rows.length, kinds.length, codes.length);
  unsetFrom(rows, end);
  if (end > 0) keepString(rows, end, { kinds, codes: codes! }, code);
}

/** Whether the values of `kind` decide and the answer for all other kinds is no. */
function decidesOnly(byKind: Int32Array, kind: number): boolean {
  return byKind.every((answer, i) => answer === (i === kind ? BY_VALUE : 0));
}

// An array matches if one of its elements does. Elements are a column like any other: they are tested
// with its fast loops, and the matching elements are then mapped to their rows.

type Items = NonNullable<MetadataColumn['items']>;

/** A bitmap of the elements of the first `rowCount` rows. */
export function elementsOfRows({ offsets }: Items, rowCount: number): Bitmap {
  const end = offsets[Math.min(rowCount, offsets.length - 1)] ?? 0;
  const words = new Uint32Array((end + 31) >>> 5);
  // A slice of later rows has all elements of the column: leave out words of earlier rows.
  words.fill(0xffffffff, (offsets[0] ?? 0) >>> 5);
  if ((end & 31) !== 0) words[words.length - 1] &= (1 << (end & 31)) - 1;
  return { length: end, words };
}

/** The rows, of `rowCount`, that have at least one of the elements. */
export function rowsOfElements({ offsets }: Items, elements: Bitmap, rowCount: number): Bitmap {
  const rows = { length: rowCount, words: new Uint32Array((rowCount + 31) >>> 5) };
  const end = Math.min(rowCount, offsets.length - 1);
  let row = 0;
  let element = nextSetBit(elements, Math.max(0, offsets[0] ?? 0));
  while (element !== -1) {
    while (row < end && offsets[row + 1] <= element) row++;
    if (row >= end) break;
    setBit(rows, row);
    element = nextSetBit(elements, offsets[row + 1]);
  }
  return rows;
}
