// Which rows of a chunk any of some queries wants, as a row of numbers that is added to keys.

import type { ExactTopKSelector } from './exact-top-k-selector.js';

export interface RowMask {
  /** [rowCount] float32: 0 for rows that some query wants, −Infinity for the others. */
  readonly values: Float32Array;
  readonly wantedCount: number;
}

/** For the rows from `firstRow`, a multiple of 32; null where some query wants them all. */
export function createRowMask(
  selections: readonly ExactTopKSelector[],
  firstRow: number,
  rowCount: number,
): RowMask | null {
  const end = firstRow + rowCount;
  const wanted = new Uint32Array((rowCount + 31) >>> 5);
  const seen = new Map<Uint32Array, number>();
  for (const { query } of selections) {
    const to = Math.min(query.rowCount, end);
    if (to <= firstRow) continue;
    const words = query.rows?.words ?? null;
    if (words === null && to === end) return null;
    // Queries with one filter hold one bitmap.
    if (words !== null && (seen.get(words) ?? 0) >= to) continue;
    if (words !== null) seen.set(words, to);
    addWords(wanted, words, firstRow, to);
  }
  const values = new Float32Array(rowCount).fill(Number.NEGATIVE_INFINITY);
  let wantedCount = 0;
  for (let i = 0; i < rowCount; i++) {
    if (((wanted[i >>> 5]! >>> (i & 31)) & 1) === 0) continue;
    values[i] = 0;
    wantedCount++;
  }
  return { values, wantedCount };
}

/** Adds the bits of the rows from..to, or all ones where `words` is null. */
function addWords(wanted: Uint32Array, words: Uint32Array | null, from: number, to: number): void {
  const firstWord = from >>> 5;
  const lastWord = (to - 1) >>> 5;
  for (let word = firstWord; word <= lastWord; word++) {
    const rows = word === lastWord ? 0xffffffff >>> (31 - ((to - 1) & 31)) : 0xffffffff;
    wanted[word - firstWord]! |= (words === null ? 0xffffffff : words[word]!) & rows;
  }
}
