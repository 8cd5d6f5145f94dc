// Evaluates one condition over its columns by choosing the fastest loop for the operator's plan.

import {
  type Bitmap,
  clearBit,
  copyBitmap,
  countBits,
  nextSetBit,
  setBit,
} from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { ID_PATH } from '../common/filter-operators.js';
import { foldStrings } from '../common/fold-case.js';
import type { Utf8Column } from '../common/types.js';
import { EMPTY_COLUMN, type IsStopped, type NarrowByElements, unsetFrom } from './column-plans.js';
import { findString } from './dictionary.js';
import type { FilterTest, TestOperator } from './filter-node.js';
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
  readonly isStopped: IsStopped;
  readonly narrowByElements: NarrowByElements;
}

/**
 * Clears the rows that do not satisfy the test. Rows past the end of a column are missing.
 * @param columns one for each path of the test.
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

/** Whether the test compares with a string that has a single code in the column. */
function isStringEquality(
  test: FilterTest,
  { items }: MetadataColumn,
): test is FilterTest<'$eq'> & { readonly operand: string } {
  const { operator, operand, path, ignoresCase } = test;
  const isString = operator === '$eq' && typeof operand === 'string' && ignoresCase !== true;
  return isString && items === null && path !== ID_PATH;
}

/** Returns the column with case-folded strings. Entries of its dictionaries may repeat. */
function foldColumn(column: MetadataColumn): MetadataColumn {
  const { dictionary, dictionaryCount, items } = column;
  return {
    ...column,
    dictionary: dictionary && foldStrings(dictionary, dictionaryCount),
    items: items && { ...items, elements: foldColumn(items.elements) },
  };
}

/**
 * Returns a column of the ids of rows. Entries of its dictionary may repeat, because a segment holds a row for each
 * version of a vector until it is compacted.
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

/** Clears the rows that do not satisfy all ranges, which are evaluated in one pass. */
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
    // Rows past the end of the numbers have none.
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

/** Clears the rows whose numbers pass only when rounded to float64. */
function keepExact(rows: Bitmap, column: MetadataColumn, lookup: Lookup): void {
  if (lookup.exact === null) return;
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    if (answerExactly(lookup, column, row, 1) === 0) clearBit(rows, row);
  }
}

/** Keeps arrays with an element that passes `byElement`, and other rows that pass `lookup`. */
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
  const others = copyBitmap(rows);
  const byKind = lookup.byKind.with(KIND.array, 0);
  narrowByRowTest(others, { lookup: { ...lookup, byKind }, elementTest: null }, column);
  for (let i = 0; i < rows.words.length; i++) rows.words[i] &= arrays.words[i] | others.words[i];
}

/** Whether enough rows are left that testing all elements is faster than testing row by row. */
function isDense(rows: Bitmap): boolean {
  return countBits(rows) * DENSE_SHARE >= rows.length;
}

const DENSE_SHARE = 16;

/** The most common test, which needs no table by dictionary code. */
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

// An array matches if one of its elements does. Elements form a column like any other, so the fast loops test
// them, and the matching elements are then mapped to their rows.

type Items = NonNullable<MetadataColumn['items']>;

/** Returns a bitmap with the elements of the first `rowCount` rows set. */
export function elementsOfRows({ offsets }: Items, rowCount: number): Bitmap {
  const end = offsets[Math.min(rowCount, offsets.length - 1)] ?? 0;
  const words = new Uint32Array((end + 31) >>> 5);
  // In a slice of later rows the elements of earlier rows come first; whole words of them are left out.
  words.fill(0xffffffff, (offsets[0] ?? 0) >>> 5);
  if ((end & 31) !== 0) words[words.length - 1] &= (1 << (end & 31)) - 1;
  return { length: end, words };
}

/** Returns the rows below `rowCount` that contain at least one of the elements. */
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
