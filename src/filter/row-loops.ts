// The loops over rows. Each processes 32 rows at a time and builds a word of the bitmap in a register. Cleared
// rows stay cleared, and words without set bits are skipped. A loop processes the rows below `end`, for which its
// arrays have values, and does not change later bits.

import type { Bitmap } from '../common/bitmap.js';
import { KIND, type MetadataColumn } from '../common/columns.js';
import { BY_VALUE, findNumber, type Lookup, lookUp, type NumberList } from './lookup.js';

// The loops are fast for three reasons. Their only branches skip 32 rows, because branches on unordered values would
// be mispredicted. Eight rows are unrolled by hand, because V8 neither unrolls nor vectorises. And each argument has
// a single type, so that each loop is compiled once.

/** Keeps the rows whose kind has an answer other than 0. */
export function keepKinds(rows: Bitmap, end: number, kinds: Uint8Array, byKind: Int32Array): void {
  const all = Object.values(KIND);
  const wanted = all.filter((kind) => byKind[kind] !== 0);
  // Searches for the wanted or the unwanted kinds, whichever are fewer, so for at most four.
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

/** Keeps the rows with a number in the closed interval low..high. */
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

/** Keeps the rows whose number is in the list. All numbers must lie between its least and its greatest. */
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

/** Keeps the rows with a string of this dictionary code. */
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

/** Keeps the rows with a string whose code has an answer other than 0. */
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

/** @param table its length is a power of two, and each entry is 0 or 1. */
function keepCodes(
  words: Uint32Array,
  wordCount: number,
  kindWords: Uint32Array,
  codes: Int32Array,
  table: Uint8Array,
): void {
  // Codes of rows without a string may be out of bounds; the mask keeps them inside the table.
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
 * Runs the loop on the complete words, then on a copy of the last, incomplete word, padded with missing rows.
 * `kinds` and `values` must have a value for every row below `end`.
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

/** Returns the 32 rows of the word that contains `end`, with zeros from `end` on. */
function lastRows<Values extends Float64Array | Int32Array | Uint8Array>(
  values: Values,
  end: number,
): Values {
  const SameArray = values.constructor as new (length: number) => Values;
  const rows = new SameArray(32);
  rows.set(values.subarray(end & ~31, end));
  return rows;
}

/** A test for rows of all kinds. */
export interface RowTest {
  /** Decides all rows except arrays that it answers with BY_VALUE. */
  readonly lookup: Lookup;
  /** Decides those arrays: at least `foundMin` values of its lookup must be elements. Null if not needed. */
  readonly elementTest: ElementTest | null;
}

interface ElementTest {
  readonly lookup: Lookup;
  readonly foundMin: number;
}

/** Keeps the rows of any kind that pass the test. */
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
        answer === BY_VALUE && elementTest !== null
          ? isArrayKept(column.items, row, elementTest, seen)
          : answer !== 0;
      kept |= Number(isKept) << row;
    }
    words[first >>> 5] = kept & word;
  }
}

/** @param seen 1 + the last row with each answer, so that a value counts once per row. */
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

/** Returns a word with the bits from bit `count` (1 to 32) on set. */
function bitsFrom(count: number): number {
  return count === 32 ? 0 : 0xffffffff << count;
}

// Kinds are tested 32 rows at a time: eight 32-bit words of four kinds each become a word of 32 bits.
// Most columns contain a single kind, which eight comparisons establish.

/** Returns kinds as words: kind i is byte i & 3 of word i >>> 2. An incomplete last word is left out. */
export function kindWordsOf(kinds: Uint8Array): Uint32Array {
  // A Uint32Array must start at a multiple of four; a column in a file need not.
  const { buffer, byteOffset, length } = kinds.byteOffset % 4 === 0 ? kinds : kinds.slice();
  return new Uint32Array(buffer, byteOffset, length >>> 2);
}

/** Returns a mask in which bit i is 1 if row 32 · `index` + i is of the kind. Kinds are below 8. */
export function kindMask(kindWords: Uint32Array, index: number, kind: number): number {
  const four = Math.imul(kind, 0x01010101);
  const first = index << 3;
  const a = kindWords[first] ^ four;
  const b = kindWords[first + 1] ^ four;
  const c = kindWords[first + 2] ^ four;
  const d = kindWords[first + 3] ^ four;
  const e = kindWords[first + 4] ^ four;
  const f = kindWords[first + 5] ^ four;
  const g = kindWords[first + 6] ^ four;
  const h = kindWords[first + 7] ^ four;
  if ((a | b | c | d | e | f | g | h) === 0) return -1;
  return (
    zeroBytes(a) |
    (zeroBytes(b) << 4) |
    (zeroBytes(c) << 8) |
    (zeroBytes(d) << 12) |
    (zeroBytes(e) << 16) |
    (zeroBytes(f) << 20) |
    (zeroBytes(g) << 24) |
    (zeroBytes(h) << 28)
  );
}

/** Returns a mask in which bit i is 1 if byte i is 0. All bytes must be below 8. */
function zeroBytes(word: number): number {
  // Adding 7 carries into bit 3 of every byte that is not 0, and no further.
  const isZero = (~(word + 0x07070707) >>> 3) & 0x01010101;
  // The product moves bits 0, 8, 16 and 24 to bits 28, 29, 30 and 31, into which nothing carries.
  return Math.imul(isZero, 0x10204080) >>> 28;
}
