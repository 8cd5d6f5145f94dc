// Bitmaps with one bit per row, lowest bit first, as in Arrow, in 32-bit little-endian words, so that 32 rows are
// combined at a time. Bits from `length` on are always zero.

import { sharedMemory } from './shared-array.js';

export interface Bitmap {
  /** Number of rows. */
  readonly length: number;
  /** ceil(length / 32) words; over a SharedArrayBuffer if made by `createBitmap`. */
  readonly words: Uint32Array;
}

/** All rows 0..rowCount, or some of them. */
export interface RowSet {
  readonly rowCount: number;
  /** Null for all rows. */
  readonly rows: Bitmap | null;
}

/** A bitmap without rows, valid for any number of rows. */
export const NO_ROWS: Bitmap = { length: 0, words: new Uint32Array(0) };

/** An empty bitmap in shared memory. */
export function createBitmap(length: number): Bitmap {
  const wordCount = (length + 31) >>> 5;
  return { length, words: new Uint32Array(sharedMemory(wordCount * 4)) };
}

export function createFullBitmap(length: number): Bitmap {
  const bitmap = createBitmap(length);
  bitmap.words.fill(0xffffffff);
  clearTail(bitmap);
  return bitmap;
}

/** A copy of the first `length` bits. */
export function firstBits({ words }: Bitmap, length: number): Bitmap {
  const cut = createBitmap(length);
  cut.words.set(words.subarray(0, cut.words.length));
  clearTail(cut);
  return cut;
}

/** Returns the bits as bytes, as in Arrow: a view of the words. */
export function bitmapBytes({ words, length }: Bitmap): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, (length + 7) >>> 3);
}

/** Returns a copy that is not in shared memory. */
export function copyBitmap({ length, words }: Bitmap): Bitmap {
  return { length, words: words.slice() };
}

export function hasBit(bitmap: Bitmap, row: number): boolean {
  return ((bitmap.words[row >>> 5]! >>> (row & 31)) & 1) === 1;
}

export function setBit(bitmap: Bitmap, row: number): void {
  bitmap.words[row >>> 5]! |= 1 << (row & 31);
}

export function clearBit(bitmap: Bitmap, row: number): void {
  bitmap.words[row >>> 5]! &= ~(1 << (row & 31));
}

export function hasRow({ rowCount, rows }: RowSet, row: number): boolean {
  return row < rowCount && (rows === null || hasBit(rows, row));
}

/** The rows of the set from `from` on, ascending. */
export function* rowsIn({ rowCount, rows }: RowSet, from = 0): Generator<number> {
  if (rows === null) {
    for (let row = from; row < rowCount; row++) yield row;
    return;
  }
  let row = nextSetBit(rows, from);
  while (row >= 0 && row < rowCount) {
    yield row;
    row = nextSetBit(rows, row + 1);
  }
}

/** target &= other; `other` must be at least as long. */
export function intersectInto(target: Bitmap, other: Bitmap): void {
  for (let i = 0; i < target.words.length; i++) target.words[i]! &= other.words[i]!;
}

/** target |= other; `other` is at most as long. */
export function uniteInto(target: Bitmap, other: Bitmap): void {
  for (let i = 0; i < other.words.length; i++) target.words[i]! |= other.words[i]!;
}

/** target &= ~other; `other` must be at least as long. */
export function subtractFrom(target: Bitmap, other: Bitmap): void {
  for (let i = 0; i < target.words.length; i++) target.words[i]! &= ~other.words[i]!;
}

/** Number of set bits. */
export function countBits(bitmap: Bitmap): number {
  let count = 0;
  for (let i = 0; i < bitmap.words.length; i++) count += countWordBits(bitmap.words[i]!);
  return count;
}

/** Number of set bits in the rows from..to; `to` is at most the length. */
export function countBitsBetween(bitmap: Bitmap, from: number, to: number): number {
  if (from >= to) return 0;
  const first = from >>> 5;
  const last = (to - 1) >>> 5;
  const firstMask = 0xffffffff << (from & 31);
  const lastMask = 0xffffffff >>> (31 - ((to - 1) & 31));
  if (first === last) return countWordBits(bitmap.words[first]! & firstMask & lastMask);
  let count = countWordBits(bitmap.words[first]! & firstMask);
  for (let i = first + 1; i < last; i++) count += countWordBits(bitmap.words[i]!);
  return count + countWordBits(bitmap.words[last]! & lastMask);
}

function countWordBits(word: number): number {
  let v = word - ((word >>> 1) & 0x55555555);
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  v = (v + (v >>> 4)) & 0x0f0f0f0f;
  return Math.imul(v, 0x01010101) >>> 24;
}

/** First set bit at or after `from`, or -1. */
export function nextSetBit(bitmap: Bitmap, from: number): number {
  if (from >= bitmap.length) return -1;
  let index = from >>> 5;
  let word = bitmap.words[index]! & (0xffffffff << (from & 31));
  while (word === 0) {
    index++;
    if (index >= bitmap.words.length) return -1;
    word = bitmap.words[index]!;
  }
  return index * 32 + (31 - Math.clz32(word & -word));
}

/** The set bit after the first `count` set bits; -1 if there are no more. */
export function setBitAfter(bitmap: Bitmap, count: number): number {
  let toSkip = count;
  for (let index = 0; index < bitmap.words.length; index++) {
    let word = bitmap.words[index]!;
    const inWord = countWordBits(word);
    if (toSkip >= inWord) {
      toSkip -= inWord;
      continue;
    }
    for (; toSkip > 0; toSkip--) word &= word - 1;
    return index * 32 + (31 - Math.clz32(word & -word));
  }
  return -1;
}

/** Clears the bits from `length` on, which words cut from a longer bitmap may contain. */
export function clearTail(bitmap: Bitmap): void {
  const used = bitmap.length & 31;
  if (used !== 0) bitmap.words[bitmap.words.length - 1]! &= (1 << used) - 1;
}
