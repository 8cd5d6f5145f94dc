// One condition over one column: what the operator says of each kind, and the cheapest loop that
// can tell. Written apart from the plain meaning in `operators.ts`; tests hold the two together.

import { type Bitmap, countBits } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { elementsOfRows, type Items, rowsOfElements } from './array-rows.js';
import { findString } from './dictionary.js';
import type { FilterTest } from './filter-node.js';
import {
  createEquality,
  createRange,
  createUniform,
  intersectRanges,
  LOOK,
  type Lookup,
  type RangeOperator,
} from './lookup.js';
import type { Value } from './operators.js';
import {
  keepKinds,
  keepListed,
  keepMixed,
  keepNumbers,
  keepString,
  keepStrings,
  type RowTest,
} from './row-loops.js';

/** Unsets the rows that do not satisfy the test. Rows past the end of the column are missing. */
export function narrowByColumn(rows: Bitmap, test: FilterTest, column: MetadataColumn): void {
  if (test.operator === '$eq' && typeof test.operand === 'string' && column.items === null) {
    narrowToString(rows, test.operand, column);
    return;
  }
  narrowByRowTest(rows, planTest(test, column), column);
}

/** Unsets the rows that do not satisfy all the ranges, which are looked at together. */
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
  if (!byKind.includes(LOOK)) {
    keepKinds(rows, end, kinds, byKind);
  } else if (numbers !== null && decidesOnly(byKind, KIND.number)) {
    // Later rows hold no number.
    const numbersEnd = Math.min(end, numbers.length);
    unsetFrom(rows, numbersEnd);
    keepNumbers(rows, numbersEnd, { kinds, numbers }, rowTest.lookup);
    if (listed !== null) keepListed(rows, numbers, listed);
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

/** For arrays of which one element must pass, as `byElement` says; `lookup` says it of the others. */
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

/** Whether so many rows are left that all elements are looked at sooner than those of each row. */
function isDense(rows: Bitmap): boolean {
  return countBits(rows) * DENSE_SHARE >= rows.length;
}

const DENSE_SHARE = 16;

/** The commonest test of all: it needs no table of the dictionary. */
function narrowToString(rows: Bitmap, string: string, column: MetadataColumn): void {
  const { kinds, codes, dictionary, dictionaryCount } = column;
  const code =
    dictionary === null ? -1 : findString(dictionary, dictionaryCount, Buffer.from(string));
  const end = code < 0 || codes === null ? 0 : Math.min(rows.length, kinds.length, codes.length);
  unsetFrom(rows, end);
  if (end > 0) keepString(rows, end, { kinds, codes: codes! }, code);
}

function planTest(test: FilterTest, column: MetadataColumn): RowTest {
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
    case '$contains':
      return planContains([test.operand], 'any', column);
    case '$contains_any':
      return planContains(test.operand, 'any', column);
    case '$contains_all':
      return planContains(test.operand, 'all', column);
  }
}

function planEquality(values: readonly Value[], column: MetadataColumn): RowTest {
  const lookup = createEquality(values, column);
  lookup.byKind[KIND.missing] = lookup.byKind[KIND.null];
  if (column.items === null) return { lookup, elementTest: null };
  lookup.byKind[KIND.array] = LOOK;
  const elements = createEquality(values, column.items.elements);
  return { lookup, elementTest: { lookup: elements, foundMin: 1 } };
}

function planContains(
  values: readonly Value[],
  quantifier: 'any' | 'all',
  column: MetadataColumn,
): RowTest {
  const lookup = createUniform(0);
  lookup.byKind[KIND.array] = LOOK;
  const elements = createEquality(values, column.items?.elements ?? EMPTY_COLUMN);
  const foundMin = quantifier === 'any' ? 1 : elements.valueCount;
  return { lookup, elementTest: { lookup: elements, foundMin } };
}

/** What a path without any value has. */
export const EMPTY_COLUMN: MetadataColumn = {
  kinds: new Uint8Array(0),
  numbers: null,
  codes: null,
  dictionary: null,
  dictionaryCount: 0,
  items: null,
};

/** Whether the answer is no for every kind but `kind`, whose values decide. */
function decidesOnly(byKind: Int32Array, kind: number): boolean {
  return byKind.every((answer, i) => answer === (i === kind ? LOOK : 0));
}

function unsetFrom({ words }: Bitmap, row: number): void {
  const index = row >>> 5;
  if (index >= words.length) return;
  words[index] &= (1 << (row & 31)) - 1;
  words.fill(0, index + 1);
}
