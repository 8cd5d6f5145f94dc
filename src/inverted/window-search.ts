// Finds the rows of several segments with the highest sum over the keys of a query. Windows of rows are visited
// by upper bound of their scores, highest first; the search ends at the first window that cannot hold one of the
// best rows. The result is the same as that of scoring every row: rounding is monotone, so a sum of bounds, added
// in the same order, is never below a sum of the scores that they bound. No tolerance is needed.

import { type Bitmap, nextSetBit } from '../common/bitmap.js';
import { bucketOf, type RankKey, type SortedRankKeys } from '../common/rank-key.js';
import type { Utf8Column } from '../common/types.js';
import { type PostingLists, WINDOW_BITS, WINDOW_ROWS } from './posting-lists.js';
import { isAfter, RankedHeap, type RankedRows } from './ranked-heap.js';

/** The rows of a segment to rank, each of which contains a key of the query. */
export interface RankedView<Run extends PostingLists> {
  readonly runs: readonly Run[];
  readonly rows: Bitmap;
  readonly ids: Utf8Column;
}

/** The part of the ranking to return. */
export interface RankedRange {
  readonly k: number;
  /** Only rows after this rank key; null for all. */
  readonly after: RankKey | null;
  /** Rows whose score, rounded to float32, is lower are left out; null for no limit. */
  readonly scoreMin: number | null;
}

/** Scores the rows of one run for a query. */
export interface RunScorer {
  /** The list of each key, in the order in which scores are added; -1 where the run lacks the key. */
  readonly lists: readonly number[];
  /** Returns an upper bound, at least 0, of what a key adds to the score of any row in the window at this index. */
  boundOf(key: number, windowIndex: number): number;
  /** Adds to the scores of the rows of the postings from..to. The low bits of a row number index `scores`. */
  addScores(key: number, from: number, to: number, scores: Float64Array): void;
}

export interface RankedHits extends RankedRows {
  /** Number of views searched. */
  readonly viewCount: number;
  /** Number of rows scored. */
  readonly scoredCount: number;
}

/** The windows of one run, and the postings of the keys in them. */
interface RunWindows {
  readonly view: number;
  readonly run: PostingLists;
  readonly scorer: RunScorer;
  /** The number of the first window. */
  readonly first: number;
  readonly windowCount: number;
  /** Upper bounds of the scores in each window; -Infinity where no key occurs. */
  readonly bounds: Float64Array;
  /** Row-major [keys, windowCount]: the index of the window in `run.windows`, or -1. */
  readonly entries: Int32Array;
}

export function searchWindows<Run extends PostingLists>(
  views: readonly RankedView<Run>[],
  { k, after, scoreMin }: RankedRange,
  openScorer: (run: Run) => RunScorer,
): RankedHits {
  const top = new RankedHeap(
    k,
    views.map(({ ids }) => ids),
  );
  const scoredCount = visitWindows(views, openScorer, {
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

/** Counts the rows in each bucket of the rank keys (see `bucketOf`). The last bucket may lack rows. */
export function countInBuckets<Run extends PostingLists>(
  views: readonly RankedView<Run>[],
  rankKeys: SortedRankKeys,
  openScorer: (run: Run) => RunScorer,
): Float64Array {
  const counts = new Float64Array(rankKeys.scores.length + 1);
  const least = rankKeys.scores.at(-1) ?? Number.POSITIVE_INFINITY;
  visitWindows(views, openScorer, {
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
  /** Whether a window with this score bound holds no wanted row. */
  isLow(bound: number): boolean;
  /** Rows with lower scores are not visited. Most rows are below it, and comparing is faster than a call. */
  readonly least: number;
  /** Returns the `least` for the rows that follow. */
  visit(score: number, view: number, row: number): number;
}

/** Visits the rows of windows, highest bound first, until a bound is low. Returns the number of rows scored. */
function visitWindows<Run extends PostingLists>(
  views: readonly RankedView<Run>[],
  openScorer: (run: Run) => RunScorer,
  visitor: Visitor,
): number {
  const runWindows = views.flatMap(({ runs }, view) =>
    runs.map((run) => boundWindows(run, view, openScorer(run))),
  );
  const scores = new Float64Array(WINDOW_ROWS);
  let scoredCount = 0;
  let { least } = visitor;
  for (const { owner, window, bound } of inOrderOfBounds(runWindows)) {
    if (visitor.isLow(bound)) break;
    const { view, run, first } = owner;
    const { rows } = views[view]!;
    const from = Math.max(run.from, (first + window) << WINDOW_BITS);
    const to = Math.min(run.to, (first + window + 1) << WINDOW_BITS, rows.length);
    let row = nextSetBit(rows, from);
    if (row < 0 || row >= to) continue;
    scoreWindow(owner, window, scores);
    for (; row >= 0 && row < to; row = nextSetBit(rows, row + 1)) {
      const score = scores[row & (WINDOW_ROWS - 1)]!;
      if (score >= least) least = visitor.visit(score, view, row);
      scoredCount++;
    }
  }
  return scoredCount;
}

function isBelow(score: number, scoreMin: number | null): boolean {
  return scoreMin !== null && Math.fround(score) < scoreMin;
}

function boundWindows(run: PostingLists, view: number, scorer: RunScorer): RunWindows {
  const { lists } = scorer;
  const first = run.from >>> WINDOW_BITS;
  const windowCount = ((run.to - 1) >>> WINDOW_BITS) - first + 1;
  const bounds = new Float64Array(windowCount).fill(Number.NEGATIVE_INFINITY);
  const entries = new Int32Array(lists.length * windowCount).fill(-1);
  for (const [key, list] of lists.entries()) {
    if (list < 0) continue;
    for (let at = run.windowStarts[list]!; at < run.windowStarts[list + 1]!; at++) {
      const window = run.windows[at]! - first;
      entries[key * windowCount + window] = at;
      bounds[window] = Math.max(bounds[window]!, 0) + scorer.boundOf(key, at);
    }
  }
  return { view, run, scorer, first, windowCount, bounds, entries };
}

interface BoundedWindow {
  readonly owner: RunWindows;
  /** Index among the windows of the owner. */
  readonly window: number;
  readonly bound: number;
}

function inOrderOfBounds(runs: readonly RunWindows[]): BoundedWindow[] {
  const windows: BoundedWindow[] = [];
  for (const owner of runs) {
    for (const [window, bound] of owner.bounds.entries()) {
      if (bound >= 0) windows.push({ owner, window, bound });
    }
  }
  return windows.sort((a, b) => b.bound - a.bound);
}

/** Scores the rows of a window, adding keys in the order of the query. The low bits of a row number index `scores`. */
function scoreWindow(
  { run, scorer, windowCount, entries }: RunWindows,
  window: number,
  scores: Float64Array,
): void {
  const { windowPostings } = run;
  scores.fill(0);
  for (let key = 0; key < scorer.lists.length; key++) {
    const at = entries[key * windowCount + window]!;
    if (at >= 0) scorer.addScores(key, windowPostings[at]!, windowPostings[at + 1]!, scores);
  }
}
