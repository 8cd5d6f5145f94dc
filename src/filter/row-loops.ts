// The loops over rows, 32 at a time, each building one word of the bitmap in a register. All of
// them narrow: a row that is unset stays unset, and 32 unset rows are not looked at. Each goes
// over the rows before `end`, where its arrays may end, and leaves the bits after that alone.

import type { Bitmap } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { kindMask, kindWordsOf } from './kind-words.js';
import { findNumber, LOOK, type Lookup, lookUp, type NumberList } from './lookup.js';

// What the loops owe their speed: no branch but the ones that skip 32 rows, since values in no order
// make every second one a misprediction; eight rows written out, since V8 neither unrolls nor knows
// vectors; and arguments of one type each, so that a loop is compiled once.

/** Keeps the rows whose kind alone answers yes. */
export function keepKinds(rows: Bitmap, end: number, kinds: Uint8Array, byKind: Int32Array): void {
  const all = Object.values(KIND);
  const wanted = all.filter((kind) => byKind[kind] !== 0);
  // The fewer are looked for: at most four.
  const isInverted = wanted.length > all.length / 2;
  const sought = isInverted ? all.filter((kind) => byKind[kind] === 0) : wanted;
  overWords(rows, end, kinds, kinds, (words, wordCount, kindWords) => {
    for (let w = 0; w < wordCount; w++) {
      if (words[w] === 0) continue;
      let found = 0;
      for (let i = 0; i < sought.length; i++) found |= kindMask(kindWords, w, sought[i]);
      words[w] &= isInverted ? ~found : found;
    }
  });
}

/** Keeps the rows that hold a number from `low` to `high`, both included. */
export function keepNumbers(
  rows: Bitmap,
  end: number,
  { kinds, numbers }: { kinds: Uint8Array; numbers: Float64Array },
  { low, high }: { low: number; high: number },
): void {
  if (high === Number.POSITIVE_INFINITY) {
    overWords(rows, end, kinds, numbers, (words, wordCount, kindWords, values) => {
      keepFrom(words, wordCount, kindWords, values, low);
    });
  } else {
    overWords(rows, end, kinds, numbers, (words, wordCount, kindWords, values) => {
      keepBetween(words, wordCount, kindWords, values, low, high);
    });
  }
}

/** Keeps the rows whose number is in the list; each lies between its least and its greatest. */
export function keepListed({ words }: Bitmap, numbers: Float64Array, list: NumberList): void {
  for (let w = 0; w < words.length; w++) {
    for (let open = words[w]; open !== 0; open &= open - 1) {
      const bit = 31 - Math.clz32(open & -open);
      if (findNumber(list, numbers[(w << 5) + bit]) === 0) words[w] &= ~(1 << bit);
    }
  }
}

function keepFrom(
  words: Uint32Array,
  wordCount: number,
  kindWords: Uint32Array,
  numbers: Float64Array,
  low: number,
): void {
  for (let w = 0; w < wordCount; w++) {
    if (words[w] === 0) continue;
    const open = words[w] & kindMask(kindWords, w, KIND.number);
    if (open === 0) {
      words[w] = 0;
      continue;
    }
    let kept = 0;
    for (let row = w << 5, end = row + 32; row < end; row += 8) {
      const eight =
        Number(numbers[row] >= low) |
        (Number(numbers[row + 1] >= low) << 1) |
        (Number(numbers[row + 2] >= low) << 2) |
        (Number(numbers[row + 3] >= low) << 3) |
        (Number(numbers[row + 4] >= low) << 4) |
        (Number(numbers[row + 5] >= low) << 5) |
        (Number(numbers[row + 6] >= low) << 6) |
        (Number(numbers[row + 7] >= low) << 7);
      kept = (kept >>> 8) | (eight << 24);
    }
    words[w] = kept & open;
  }
}

function keepBetween(
  words: Uint32Array,
  wordCount: number,
  kindWords: Uint32Array,
  numbers: Float64Array,
  low: number,
  high: number,
): void {
  for (let w = 0; w < wordCount; w++) {
    if (words[w] === 0) continue;
    const open = words[w] & kindMask(kindWords, w, KIND.number);
    if (open === 0) {
      words[w] = 0;
      continue;
    }
    let kept = 0;
    for (let row = w << 5, end = row + 32; row < end; row += 8) {
      const a = numbers[row];
      const b = numbers[row + 1];
      const c = numbers[row + 2];
      const d = numbers[row + 3];
      const e = numbers[row + 4];
      const f = numbers[row + 5];
      const g = numbers[row + 6];
      const h = numbers[row + 7];
      const eight =
        (Number(a >= low) & Number(a <= high)) |
        ((Number(b >= low) & Number(b <= high)) << 1) |
        ((Number(c >= low) & Number(c <= high)) << 2) |
        ((Number(d >= low) & Number(d <= high)) << 3) |
        ((Number(e >= low) & Number(e <= high)) << 4) |
        ((Number(f >= low) & Number(f <= high)) << 5) |
        ((Number(g >= low) & Number(g <= high)) << 6) |
        ((Number(h >= low) & Number(h <= high)) << 7);
      kept = (kept >>> 8) | (eight << 24);
    }
    words[w] = kept & open;
  }
}

/** Keeps the rows that hold the string with this dictionary code. */
export function keepString(
  rows: Bitmap,
  end: number,
  { kinds, codes }: { kinds: Uint8Array; codes: Int32Array },
  code: number,
): void {
  overWords(rows, end, kinds, codes, (words, wordCount, kindWords, values) => {
    keepCode(words, wordCount, kindWords, values, code);
  });
}

function keepCode(
  words: Uint32Array,
  wordCount: number,
  kindWords: Uint32Array,
  codes: Int32Array,
  code: number,
): void {
  for (let w = 0; w < wordCount; w++) {
    if (words[w] === 0) continue;
    const open = words[w] & kindMask(kindWords, w, KIND.string);
    if (open === 0) {
      words[w] = 0;
      continue;
    }
    let kept = 0;
    for (let row = w << 5, end = row + 32; row < end; row += 8) {
      const eight =
        Number(codes[row] === code) |
        (Number(codes[row + 1] === code) << 1) |
        (Number(codes[row + 2] === code) << 2) |
        (Number(codes[row + 3] === code) << 3) |
        (Number(codes[row + 4] === code) << 4) |
        (Number(codes[row + 5] === code) << 5) |
        (Number(codes[row + 6] === code) << 6) |
        (Number(codes[row + 7] === code) << 7);
      kept = (kept >>> 8) | (eight << 24);
    }
    words[w] = kept & open;
  }
}

/** Keeps the rows that hold a string for whose code `byCode` is not 0. */
export function keepStrings(
  rows: Bitmap,
  end: number,
  { kinds, codes }: { kinds: Uint8Array; codes: Int32Array },
  byCode: Int32Array,
): void {
  const table = new Uint8Array(2 ** Math.ceil(Math.log2(Math.max(1, byCode.length))));
  for (let code = 0; code < byCode.length; code++) table[code] = Number(byCode[code] !== 0);
  overWords(rows, end, kinds, codes, (words, wordCount, kindWords, values) => {
    keepCodes(words, wordCount, kindWords, values, table);
  });
}

/** `table` has a power of two of entries, each 0 or 1. */
function keepCodes(
  words: Uint32Array,
  wordCount: number,
  kindWords: Uint32Array,
  codes: Int32Array,
  table: Uint8Array,
): void {
  // A code means something only where the row holds a string; elsewhere it might lead out of the table.
  const inside = table.length - 1;
  for (let w = 0; w < wordCount; w++) {
    if (words[w] === 0) continue;
    const open = words[w] & kindMask(kindWords, w, KIND.string);
    if (open === 0) {
      words[w] = 0;
      continue;
    }
    let kept = 0;
    for (let row = w << 5, end = row + 32; row < end; row += 8) {
      const eight =
        table[codes[row] & inside] |
        (table[codes[row + 1] & inside] << 1) |
        (table[codes[row + 2] & inside] << 2) |
        (table[codes[row + 3] & inside] << 3) |
        (table[codes[row + 4] & inside] << 4) |
        (table[codes[row + 5] & inside] << 5) |
        (table[codes[row + 6] & inside] << 6) |
        (table[codes[row + 7] & inside] << 7);
      kept = (kept >>> 8) | (eight << 24);
    }
    words[w] = kept & open;
  }
}

/**
 * Gives the loop the words that are whole, and then the rows of a last one that is not, copied and
 * filled up with missing ones. `kinds` and `values` have a value for every row before `end`.
 */
function overWords<Values extends Float64Array | Int32Array | Uint8Array>(
  { words }: Bitmap,
  end: number,
  kinds: Uint8Array,
  values: Values,
  loop: (words: Uint32Array, wordCount: number, kindWords: Uint32Array, values: Values) => void,
): void {
  const wholeCount = end >>> 5;
  const rest = end & 31;
  if (wholeCount > 0) loop(words, wholeCount, kindWordsOf(kinds), values);
  if (rest === 0) return;
  const counted = (1 << rest) - 1;
  const last = Uint32Array.of(words[wholeCount] & counted);
  loop(last, 1, kindWordsOf(lastRows(kinds, end)), lastRows(values, end));
  words[wholeCount] = last[0] | (words[wholeCount] & ~counted);
}

/** The rows of the word that `end` lies in, and zeros after it: 32 in all. */
function lastRows<Values extends Float64Array | Int32Array | Uint8Array>(
  values: Values,
  end: number,
): Values {
  const SameArray = values.constructor as new (length: number) => Values;
  const rows = new SameArray(32);
  rows.set(values.subarray(end & ~31, end));
  return rows;
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
