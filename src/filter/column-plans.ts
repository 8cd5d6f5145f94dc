// How operators work over columns: plans for the loops over rows, and loops for the operators that no plan describes.
// They are independent of the meaning over JSON in `operators.ts`; tests compare the two.

import { type Bitmap, clearBit, copyBitmap, nextSetBit, subtractFrom } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import {
  ELEMENT_PATH,
  type ElementFilter,
  type Interval,
  type JsonType,
  type Value,
} from './filter-node.js';
import type { PointTest } from './geo.js';
import { BY_VALUE, createEquality, createStringLookup, createUniform } from './lookup.js';
import { keepKinds, type RowTest } from './row-loops.js';
import type { StringTest } from './string-tests.js';

/** Whether to stop; checked between strings. The result of a stopped evaluation is wrong and not used. */
export type IsStopped = () => boolean;

/** Clears the rows whose elements in the column all fail the filter. */
export type NarrowByElements = (
  rows: Bitmap,
  filter: ElementFilter,
  column: MetadataColumn,
) => void;

export function planEquality(values: readonly Value[], column: MetadataColumn): RowTest {
  const lookup = createEquality(values, column);
  lookup.byKind[KIND.missing] = lookup.byKind[KIND.null];
  if (column.items === null) return { lookup, elementTest: null };
  lookup.byKind[KIND.array] = BY_VALUE;
  const elements = createEquality(values, column.items.elements);
  return { lookup, elementTest: { lookup: elements, foundMin: 1 } };
}

export function planContains(
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

export function planExistence(exists: boolean): RowTest {
  const lookup = createUniform(exists ? 1 : 0);
  lookup.byKind[KIND.missing] = exists ? 0 : 1;
  return { lookup, elementTest: null };
}

/** Plans an operator that is satisfied by strings that pass, but not by arrays. */
export function planScalarString(
  test: StringTest,
  column: MetadataColumn,
  isStopped: IsStopped,
): RowTest {
  return { lookup: createStringLookup(test, column, isStopped), elementTest: null };
}

/** Plans an operator that is satisfied by strings that pass and by arrays that contain one. */
export function planStringTest(
  test: StringTest,
  column: MetadataColumn,
  isStopped: IsStopped,
): RowTest {
  const lookup = createStringLookup(test, column, isStopped);
  if (column.items === null) return { lookup, elementTest: null };
  lookup.byKind[KIND.array] = BY_VALUE;
  const elements = createStringLookup(test, column.items.elements, isStopped);
  return { lookup, elementTest: { lookup: elements, foundMin: 1 } };
}

const KINDS_BY_TYPE: Readonly<Record<JsonType, readonly number[]>> = {
  null: [KIND.null],
  boolean: [KIND.false, KIND.true],
  number: [KIND.number],
  string: [KIND.string],
  array: [KIND.array],
  object: [KIND.object],
};

export function planTypes(types: readonly JsonType[]): RowTest {
  const lookup = createUniform(0);
  for (const kind of types.flatMap((type) => KINDS_BY_TYPE[type])) lookup.byKind[kind] = 1;
  return { lookup, elementTest: null };
}

export function narrowToSize(
  rows: Bitmap,
  sizes: Interval<number>,
  [column]: readonly MetadataColumn[],
): void {
  narrowToKind(rows, KIND.array, column);
  const offsets = column.items?.offsets ?? NO_OFFSETS;
  for (let row = nextSetBit(rows, 0); row !== -1; row = nextSetBit(rows, row + 1)) {
    const count = row + 1 < offsets.length ? offsets[row + 1] - offsets[row] : 0;
    if (!isCountIn(count, sizes)) clearBit(rows, row);
  }
}

const NO_OFFSETS = new Int32Array(1);

export function isCountIn(count: number, { from, until }: Interval<number>): boolean {
  return (from === null || count >= from) && (until === null || count < until);
}

/** Keeps the rows with an array whose elements are all among the values. */
export function narrowToOnly(
  rows: Bitmap,
  values: readonly Value[],
  [column]: readonly MetadataColumn[],
  narrowByElements: NarrowByElements,
): void {
  narrowToKind(rows, KIND.array, column);
  const isValue = { kind: 'test', path: ELEMENT_PATH, operator: '$in', operand: values } as const;
  const isOther = { kind: 'not', child: isValue } as const;
  const withOthers = copyBitmap(rows);
  narrowByElements(withOthers, { hasFields: false, node: isOther }, column);
  subtractFrom(rows, withOthers);
}

/** Keeps the rows whose coordinates, in two columns, are a point in the shape. */
export function narrowToPoints(
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

/** Keeps the rows of a kind. */
export function narrowToKind(rows: Bitmap, kind: number, { kinds }: MetadataColumn): void {
  const byKind = new Int32Array(8);
  byKind[kind] = 1;
  const end = Math.min(rows.length, kinds.length);
  unsetFrom(rows, end);
  keepKinds(rows, end, kinds, byKind);
}

/** Clears all rows from `row` on. */
export function unsetFrom({ words }: Bitmap, row: number): void {
  const index = row >>> 5;
  if (index >= words.length) return;
  words[index] &= (1 << (row & 31)) - 1;
  words.fill(0, index + 1);
}

/** A column without values. */
export const EMPTY_COLUMN: MetadataColumn = {
  kinds: new Uint8Array(0),
  numbers: null,
  residues: null,
  codes: null,
  dictionary: null,
  dictionaryCount: 0,
  items: null,
};
