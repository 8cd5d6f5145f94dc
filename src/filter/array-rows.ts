// Arrays with an element that passes, found from the side of the elements: these are a column like
// any other, with its fast loops, and then the rows are walked once.

import { type Bitmap, nextSetBit, setBit } from '../common/bitmap.js';
import type { MetadataColumn } from '../common/columns.js';

export type Items = NonNullable<MetadataColumn['items']>;

/** The elements of the first `rowCount` rows. */
export function elementsOfRows({ offsets }: Items, rowCount: number): Bitmap {
  const end = offsets[Math.min(rowCount, offsets.length - 1)] ?? 0;
  const words = new Uint32Array((end + 31) >>> 5);
  // A view of later rows has all elements: those before are left out by the word.
  words.fill(0xffffffff, (offsets[0] ?? 0) >>> 5);
  if ((end & 31) !== 0) words[words.length - 1] &= (1 << (end & 31)) - 1;
  return { length: end, words };
}

/** The rows, `rowCount` of them, that have one of the elements. */
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
