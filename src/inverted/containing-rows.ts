// Builds the bitmap of the rows of a segment that contain keys of a query.

import { type Bitmap, clearTail, countBits, intersectInto, setBit } from '../common/bitmap.js';
import type { PostingLists } from './posting-lists.js';

/** The rows that match a query and pass its filter, and their number. */
export interface MatchedRows {
  readonly rows: Bitmap;
  readonly visibleCount: number;
}

/** Sets the bits of the rows of a list that lie within the bitmap; none for list -1. */
export function addRows(target: Bitmap, lists: PostingLists, list: number): void {
  if (list < 0) return;
  const { rows, postingStarts } = lists;
  const end = postingStarts[list + 1]!;
  for (let i = postingStarts[list]!; i < end && rows[i]! < target.length; i++) {
    setBit(target, rows[i]!);
  }
}

/** Clears the bits of `matching` that are not in `passing`, in place. Null stands for all rows. */
export function narrowTo(matching: Bitmap, passing: Bitmap | null): MatchedRows {
  if (passing !== null) intersectInto(matching, passing);
  clearTail(matching);
  return { rows: matching, visibleCount: countBits(matching) };
}
