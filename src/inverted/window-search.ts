// The best rows of some segments by a sum over the keys of a query. Windows of rows are visited in the
// order of upper bounds of their scores, the highest first; the search ends at the first window that can
// no longer have one of the best rows. The result is that of scoring every row: rounding is monotone, so a
// sum of bounds, added in the same order, is not below the sum of what they bound. No tolerance is needed.

import { type Bitmap, nextSetBit } from '../common/bitmap.js';
import { bucketOf, type RankKey, type SortedRankKeys } from '../common/rank-key.js';
import type { Utf8Column } from '../common/types.js';
import { type PostingLists, WINDOW_BITS, WINDOW_ROWS } from './posting-lists.js';
import { isAfter, type RankedRows, TopRows } from './top-rows.js';

/** The rows of a segment that are ranked, each of which has a key of the query. */
export interface RankedView<Part extends PostingLists> {
  readonly parts: readonly Part[];
  readonly rows: Bitmap;
  readonly ids: Utf8Column;
}

/** Which of the rows are asked for. */
export interface RankedRange {
  readonly k: number;
  /** Only rows after this rank key; null for all. */
  readonly after: RankKey | null;
  /** The least score, rounded to float32; null for none. */
  readonly scoreMin: number | null;
}

/** A query over one part. */
export interface PartScores {
  /** The list of each key, in the order in which scores are added; -1 where the part lacks the key. */
  readonly lists: readonly number[];
  /** At least 0, and at least what a key adds to the score of any row in the window at this index. */
  boundOf(key: number, windowIndex: number): number;
  /** Adds to the score of each row of the postings from..to, which is at the low bits of its number. */
  addScores(key: number, from: number, to: number, scores: Float64Array): void;
}

export interface RankedHits extends RankedRows {
  /** The views that were searched. */
  readonly viewCount: number;
  /** Rows that were scored. */
  readonly scoredCount: number;
}

/** The windows of one part, and the postings of the keys in them. */
interface PartWindows {
  readonly view: number;
  readonly part: PostingLists;
  readonly partScores: PartScores;
  /** The number of the first window. */
  readonly first: number;
  readonly windowCount: number;
  /** Upper bounds of the scores in each window; -Infinity where no key occurs. */
  readonly bounds: Float64Array;
  /** Row-major [keys, windowCount]: the window of the key in the part, or -1. */
  readonly entries: Int32Array;
}

export function searchWindows<Part extends PostingLists>(
  views: readonly RankedView<Part>[],
  { k, after, scoreMin }: RankedRange,
  openPart: (part: Part) => PartScores,
): RankedHits {
  const top = new TopRows(
    k,
    views.map(({ ids }) => ids),
  );
  const scoredCount = visitWindows(views, openPart, {
    isLow: (bound) => bound < top.scoreMin || isBelow(bound, scoreMin),
    least: Number.NEGATIVE_INFINITY,
    visit(score, view, row) {
      const isWanted =
        !isBelow(score, scoreMin) &&
        (after === null || isAfter(after, score, views[view]!.ids, row));
      if (isWanted) top.offer(score, view, row);
      return top.scoreMin;
    },
  });
  return { ...top.ranked(), viewCount: views.length, scoredCount };
}

/** Counts the rows in each bucket of the keys, see `bucketOf`; the last bucket may lack rows. */
export function countInBuckets<Part extends PostingLists>(
  views: readonly RankedView<Part>[],
  rankKeys: SortedRankKeys,
  openPart: (part: Part) => PartScores,
): Float64Array {
  const counts = new Float64Array(rankKeys.scores.length + 1);
  const least = rankKeys.scores.at(-1) ?? Number.POSITIVE_INFINITY;
  visitWindows(views, openPart, {
    isLow: (bound) => bound < least,
    least,
    visit(score, view, row) {
      counts[bucketOf(rankKeys, score, views[view]!.ids, row)]!++;
      return least;
    },
  });
  return counts;
}

interface Visitor {
  /** Whether no row of windows with this bound is wanted. */
  isLow(bound: number): boolean;
  /** Rows with lower scores are not visited. Most rows are left out by it, which is faster than a call. */
  readonly least: number;
  /** Returns the `least` of the rows that follow. */
  visit(score: number, view: number, row: number): number;
}

/**
 * Visits the rows of windows, those with high bounds first, until the bound of a window is low. Returns the
 * number of rows that were scored.
 */
function visitWindows<Part extends PostingLists>(
  views: readonly RankedView<Part>[],
  openPart: (part: Part) => PartScores,
  visitor: Visitor,
): number {
  const partWindows = views.flatMap(({ parts }, view) =>
    parts.map((part) => boundWindows(part, view, openPart(part))),
  );
  const scores = new Float64Array(WINDOW_ROWS);
  let scoredCount = 0;
  let { least } = visitor;
  for (const { of, window, bound } of inOrderOfBounds(partWindows)) {
    if (visitor.isLow(bound)) break;
    const view = views[of.view]!;
    const from = Math.max(of.part.from, (of.first + window) << WINDOW_BITS);
    const to = Math.min(of.part.to, (of.first + window + 1) << WINDOW_BITS, view.rows.length);
    let row = nextSetBit(view.rows, from);
    if (row < 0 || row >= to) continue;
    scoreWindow(of, window, scores);
    for (; row >= 0 && row < to; row = nextSetBit(view.rows, row + 1)) {
      const score = scores[row & (WINDOW_ROWS - 1)]!;
      if (score >= least) least = visitor.visit(score, of.view, row);
      scoredCount++;
    }
  }
  return scoredCount;
}

function isBelow(score: number, scoreMin: number | null): boolean {
  return scoreMin !== null && Math.fround(score) < scoreMin;
}

function boundWindows(part: PostingLists, view: number, partScores: PartScores): PartWindows {
  const { lists } = partScores;
  const first = part.from >>> WINDOW_BITS;
  const windowCount = ((part.to - 1) >>> WINDOW_BITS) - first + 1;
  const bounds = new Float64Array(windowCount).fill(Number.NEGATIVE_INFINITY);
  const entries = new Int32Array(lists.length * windowCount).fill(-1);
  for (const [key, list] of lists.entries()) {
    if (list < 0) continue;
    for (let at = part.windowStarts[list]!; at < part.windowStarts[list + 1]!; at++) {
      const window = part.windows[at]! - first;
      entries[key * windowCount + window] = at;
      bounds[window] = Math.max(bounds[window]!, 0) + partScores.boundOf(key, at);
    }
  }
  return { view, part, partScores, first, windowCount, bounds, entries };
}

interface BoundedWindow {
  readonly of: PartWindows;
  readonly window: number;
  readonly bound: number;
}

function inOrderOfBounds(parts: readonly PartWindows[]): BoundedWindow[] {
  const windows: BoundedWindow[] = [];
  for (const of of parts) {
    for (const [window, bound] of of.bounds.entries()) {
      if (bound >= 0) windows.push({ of, window, bound });
    }
  }
  return windows.sort((a, b) => b.bound - a.bound);
}

/** The score of each row of a window, at the low bits of its number: keys in the order of the query. */
function scoreWindow(
  { part, partScores, windowCount, entries }: PartWindows,
  window: number,
  scores: Float64Array,
): void {
  const { windowPostings } = part;
  scores.fill(0);
  for (let key = 0; key < partScores.lists.length; key++) {
    const at = entries[key * windowCount + window]!;
    if (at >= 0) partScores.addScores(key, windowPostings[at]!, windowPostings[at + 1]!, scores);
  }
}
