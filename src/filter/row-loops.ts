// The loops over rows, 32 at a time, each building one word of the bitmap in a register. All of
// them narrow: a row that is unset stays unset, and 32 unset rows are not looked at. Each goes
// over the rows before `end`, where its arrays may end, and leaves the bits after that alone.

import type { Bitmap } from '../bitmap.js';
import { KIND, type MetadataColumn } from '../columns.js';
import { LOOK, type Lookup, lookUp } from './lookup.js';

/** Keeps the rows whose kind alone answers yes. */
export function keepKinds(rows: Bitmap, end: number, kinds: Uint8Array, byKind: Int32Array): void {
  const { words } = rows;
  for (let first = 0; first < end; first += 32) {
    const word = words[first >>> 5];
    if (word === 0) continue;
    const last = Math.min(first + 32, end);
    let kept = bitsFrom(last - first);
    for (let row = first; row < last; row++) kept |= Number(byKind[kinds[row]] !== 0) << row;
    words[first >>> 5] = kept & word;
  }
}

/** Keeps the rows that hold a number from `low` to `high`, both included. */
export function keepNumbers(
  rows: Bitmap,
  end: number,
  { kinds, numbers }: { kinds: Uint8Array; numbers: Float64Array },
  { low, high }: { low: number; high: number },
): void {
  const { words } = rows;
  for (let first = 0; first < end; first += 32) {
    const word = words[first >>> 5];
    if (word === 0) continue;
    const last = Math.min(first + 32, end);
    let kept = bitsFrom(last - first);
    for (let row = first; row < last; row++) {
      const number = numbers[row];
      // Without a branch: numbers in no order make every second one a misprediction.
      const isInside = Number(number >= low) & Number(number <= high);
      kept |= (isInside & Number(kinds[row] === KIND.number)) << row;
    }
    words[first >>> 5] = kept & word;
  }
}

/** Keeps the rows that hold a string for whose code `byCode` is not 0. */
export function keepStrings(
  rows: Bitmap,
  end: number,
  { kinds, codes }: { kinds: Uint8Array; codes: Int32Array },
  byCode: Int32Array,
): void {
  const { words } = rows;
  for (let first = 0; first < end; first += 32) {
    const word = words[first >>> 5];
    if (word === 0) continue;
    const last = Math.min(first + 32, end);
    let kept = bitsFrom(last - first);
    for (let row = first; row < last; row++) {
      // A code means something only where the row holds a string.
      if (kinds[row] === KIND.string) kept |= Number(byCode[codes[row]] !== 0) << row;
    }
    words[first >>> 5] = kept & word;
  }
}

/** How rows of any kind are decided. */
export interface RowTest {
  /** For everything but arrays, and for arrays too unless it says LOOK. */
  readonly lookup: Lookup;
  /** For arrays: so many of the lookup's values must be among the elements. Null when not needed. */
  readonly elementTest: ElementTest | null;
}

interface ElementTest {
  readonly lookup: Lookup;
  readonly foundMin: number;
}

/** Keeps the rows that pass the test, whatever they hold. */
export function keepMixed(
  rows: Bitmap,
  end: number,
  column: MetadataColumn,
  { lookup, elementTest }: RowTest,
): void {
  const { words } = rows;
  const seen = new Int32Array(1 + (elementTest?.lookup.valueCount ?? 0));
  for (let first = 0; first < end; first += 32) {
    const word = words[first >>> 5];
    if (word === 0) continue;
    const last = Math.min(first + 32, end);
    let kept = bitsFrom(last - first);
    for (let row = first; row < last; row++) {
      if (((word >>> row) & 1) === 0) continue;
      const answer = lookUp(lookup, column, row);
      const isKept =
        answer === LOOK && elementTest !== null
          ? isArrayKept(column.items, row, elementTest, seen)
          : answer !== 0;
      kept |= Number(isKept) << row;
    }
    words[first >>> 5] = kept & word;
  }
}

/** `seen` holds, by answer, 1 + the last row that had it: so a value counts once a row. */
function isArrayKept(
  items: MetadataColumn['items'],
  row: number,
  { lookup, foundMin }: ElementTest,
  seen: Int32Array,
): boolean {
  let foundCount = 0;
  if (items !== null && row + 1 < items.offsets.length) {
    const { offsets, elements } = items;
    const end = offsets[row + 1];
    for (let i = offsets[row]; i < end && foundCount < foundMin; i++) {
      const answer = lookUp(lookup, elements, i);
      if (answer === 0 || seen[answer] === row + 1) continue;
      seen[answer] = row + 1;
      foundCount++;
    }
  }
  return foundCount >= foundMin;
}

/** The bits of a word at and after `count`, 1 to 32. */
function bitsFrom(count: number): number {
  return count === 32 ? 0 : 0xffffffff << count;
}
