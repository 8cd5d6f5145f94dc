// Bitmaps of the rows of a segment that have keys of a query.

import { type Bitmap, clearTail, countBits, intersectInto, setBit } from '../common/bitmap.js';
import type { PostingLists } from './posting-lists.js';

/** The rows that match and pass a filter, and their number. */
export interface MatchedRows {
  readonly rows: Bitmap;
  readonly visibleCount: number;
}

/** Sets the bits of the rows of a list, as far as the bitmap reaches; none for -1. */
export function addRows(target: Bitmap, lists: PostingLists, list: number): void {
  if (list < 0) return;
  const { rows, postingStarts } = lists;
  const end = postingStarts[list + 1]!;
  for (let i = postingStarts[list]!; i < end && rows[i]! < target.length; i++) {
    setBit(target, rows[i]!);
  }
}

/** Changes `matching` to those that are in `passing`; null has all. */
export function narrowTo(matching: Bitmap, passing: Bitmap | null): MatchedRows {
  if (passing !== null) intersectInto(matching, passing);
  clearTail(matching);
  return { rows: matching, visibleCount: countBits(matching) };
}
