// Evaluates one condition over one column: plans the answers per kind and selects the fastest loop. Except
// for tests of single strings and points, it is independent of the plain definition in `operators.ts`;
// the tests compare the two.

import { type Bitmap, clearBit, countBits, nextSetBit, setBit } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { foldStrings } from '../common/fold-case.js';
import type { Utf8Column } from '../common/types.js';
import { findString } from './dictionary.js';
import {
  type FilterTest,
  ID_PATH,
  type Interval,
  type JsonType,
  type Value,
} from './filter-node.js';
import type { GeoOperator, PointTest } from './geo.js';
import {
  answerExactly,
  BY_VALUE,
  createEquality,
  createRange,
  createStringLookup,
  createUniform,
  intersectRanges,
  type Lookup,
  type RangeOperator,
} from './lookup.js';
import { isCountIn } from './operators.js';
import {
  keepKinds,
  keepListed,
  keepMixed,
  keepNumbers,
  keepString,
  keepStrings,
  type RowTest,
} from './row-loops.js';
import { STRING_TESTS, type StringTest } from './string-tests.js';

/** A condition on one column: not on a point, nor on the fields of elements. */
export type ColumnTest = Exclude<FilterTest, FilterTest<GeoOperator | '$elem_match'>>;

/**
 * Clears the rows that do not satisfy the test. Rows past the end of the column are missing. After
 * `isStopped`, which is checked between strings, the result is wrong.
 */
export function narrowByColumn(
  rows: Bitmap,
  test: ColumnTest,
  column: MetadataColumn,
  isStopped: () => boolean,
): void {
  if (test.operator === '$size') {
    narrowToSize(rows, test.operand, column);
  } else if (test.ignoresCase === true) {
    narrowByRowTest(rows, planTest(test, foldColumn(column), isStopped), column);
  } else if (
    test.operator === '$eq' &&
    typeof test.operand === 'string' &&
    hasOneCode(test, column)
  ) {
    narrowToString(rows, test.operand, column);
  } else {
    narrowByRowTest(rows, planTest(test, column, isStopped), column);
  }
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

/** Clears the rows of all kinds but `kind`. */
export function narrowToKind(rows: Bitmap, kind: number, { kinds }: MetadataColumn): void {
  const byKind = new Int32Array(8);
  byKind[kind] = 1;
  const end = Math.min(rows.length, kinds.length);
  unsetFrom(rows, end);
  keepKinds(rows, end, kinds, byKind);
}

function narrowToSize(rows: Bitmap, sizes: Interval<number>, column: MetadataColumn): void {
  narrowToKind(rows, KIND.array, column);
  const offsets = column.items?.offsets ?? NO_OFFSETS;
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    const count = row + 1 < offsets.length ? offsets[row + 1] - offsets[row] : 0;
    if (!isCountIn(count, sizes)) clearBit(rows, row);
  }
}

const NO_OFFSETS = new Int32Array(1);

/** Clears the rows whose coordinates, in two columns, are not of a point in the shape. */
export function narrowByPoints(
  rows: Bitmap,
  isInShape: PointTest,
  lats: MetadataColumn,
  lons: MetadataColumn,
): void {
  narrowToKind(rows, KIND.number, lats);
  narrowToKind(rows, KIND.number, lons);
  if (lats.numbers === null || lons.numbers === null) return;
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    if (!isInShape(lats.numbers[row], lons.numbers[row])) clearBit(rows, row);
  }
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

/** Whether the rows that equal a string have one code. */
function hasOneCode({ path }: ColumnTest, { items }: MetadataColumn): boolean {
  return items === null && path !== ID_PATH;
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

function planTest(
  test: Exclude<ColumnTest, FilterTest<'$size'>>,
  column: MetadataColumn,
  isStopped: () => boolean,
): RowTest {
  switch (test.operator) {
    case '$eq':
      return planEquality([test.operand], column);
    case '$in':
      return planEquality(test.operand, column);
    case '$gt':
    case '$gte':
    case '$lt':
    case '$lte':
      return { lookup: createRange(test.operator, test.operand, column), elementTest: null };
    case '$exists': {
      const lookup = createUniform(test.operand ? 1 : 0);
      lookup.byKind[KIND.missing] = test.operand ? 0 : 1;
      return { lookup, elementTest: null };
    }
    case '$match':
      return planEquality([true], column);
    case '$contains':
      return planContains([test.operand], 'any', column);
    case '$contains_any':
      return planContains(test.operand, 'any', column);
    case '$contains_all':
      return planContains(test.operand, 'all', column);
    case '$type':
      return { lookup: createTypeLookup(test.operand), elementTest: null };
    case '$date': {
      const isInInterval = STRING_TESTS.$date(test.operand);
      return { lookup: createStringLookup(isInInterval, column, isStopped), elementTest: null };
    }
    case '$prefix':
    case '$suffix':
    case '$like':
    case '$regex':
      return planStringTest(STRING_TESTS[test.operator](test.operand), column, isStopped);
  }
}

const KINDS_BY_TYPE: Readonly<Record<JsonType, readonly number[]>> = {
  null: [KIND.null],
  boolean: [KIND.false, KIND.true],
  number: [KIND.number],
  string: [KIND.string],
  array: [KIND.array],
  object: [KIND.object],
};

function createTypeLookup(types: readonly JsonType[]): Lookup {
  const lookup = createUniform(0);
  for (const kind of types.flatMap((type) => KINDS_BY_TYPE[type])) lookup.byKind[kind] = 1;
  return lookup;
}

/** A string that passes, or an array with one. */
function planStringTest(
  test: StringTest,
  column: MetadataColumn,
  isStopped: () => boolean,
): RowTest {
  const lookup = createStringLookup(test, column, isStopped);
  if (column.items === null) return { lookup, elementTest: null };
  lookup.byKind[KIND.array] = BY_VALUE;
  const elements = createStringLookup(test, column.items.elements, isStopped);
  return { lookup, elementTest: { lookup: elements, foundMin: 1 } };
}

function planEquality(values: readonly Value[], column: MetadataColumn): RowTest {
  const lookup = createEquality(values, column);
  lookup.byKind[KIND.missing] = lookup.byKind[KIND.null];
  if (column.items === null) return { lookup, elementTest: null };
  lookup.byKind[KIND.array] = BY_VALUE;
  const elements = createEquality(values, column.items.elements);
  return { lookup, elementTest: { lookup: elements, foundMin: 1 } };
}

function planContains(
  values: readonly Value[],
  quantifier: 'any' | 'all',
  column: MetadataColumn,
): RowTest {
  const lookup = createUniform(0);
  lookup.byKind[KIND.array] = BY_VALUE;
  const elements = createEquality(values, column.items?.elements ?? EMPTY_COLUMN);
  const foundMin = quantifier === 'any' ? 1 : elements.valueCount;
  return { lookup, elementTest: { lookup: elements, foundMin } };
}

/** The column of a path without values. */
export const EMPTY_COLUMN: MetadataColumn = {
  kinds: new Uint8Array(0),
  numbers: null,
  residues: null,
  codes: null,
  dictionary: null,
  dictionaryCount: 0,
  items: null,
};

/** Whether the values of `kind` decide and the answer for all other kinds is no. */
function decidesOnly(byKind: Int32Array, kind: number): boolean {
  return byKind.every((answer, i) => answer === (i === kind ? BY_VALUE : 0));
}

function unsetFrom({ words }: Bitmap, row: number): void {
  const index = row >>> 5;
  if (index >= words.length) return;
  words[index] &= (1 << (row & 31)) - 1;
  words.fill(0, index + 1);
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
