// The best rows of some segments by BM25. Windows of rows are visited in the order of their bounds, the
// highest first; the search ends at the first window that can no longer have one of the best rows. The
// result is that of scoring every row: see bm25.ts for why the bounds hold to the last bit.

import { type Bitmap, nextSetBit } from '../common/bitmap.js';
import type { TextSettings } from '../common/text-settings.js';
import type { Utf8Column } from '../common/types.js';
import { lengthNorms, termScore } from './bm25.js';
import { findTerm, type TextPart, WINDOW_BITS } from './text-part.js';
import { isAfter, type RankedRows, type TextPosition, TopRows } from './top-rows.js';

/** What a search is for, in every segment. */
export interface TextRanking extends Pick<TextSettings, 'k1' | 'b'> {
  /** Distinct byte strings in the order of their bytes, and the weight of each. */
  readonly terms: readonly string[];
  readonly weights: readonly number[];
  /** Of the documents of the whole snapshot; above 0 if there are any. */
  readonly averageLength: number;
  readonly k: number;
  /** Only rows after this position; null for all. */
  readonly after: TextPosition | null;
  /** The least score, rounded to float32; null for none. */
  readonly scoreMin: number | null;
}

/** The rows of a segment that are ranked, each of which contains a term. */
export interface RankedView {
  readonly parts: readonly TextPart[];
  readonly rows: Bitmap;
  readonly ids: Utf8Column;
}

export interface TextHits extends RankedRows {
  /** The views that were searched. */
  readonly viewCount: number;
  /** Rows that were scored. */
  readonly scoredCount: number;
}

const WINDOW_ROWS = 1 << WINDOW_BITS;

/** The windows of one part, and the postings of the terms in them. */
interface PartWindows {
  readonly view: number;
  readonly part: TextPart;
  readonly weights: readonly number[];
  /** The number of the first window. */
  readonly first: number;
  readonly windowCount: number;
  /** Upper bounds of the scores in each window; 0 where no term occurs. */
  readonly bounds: Float64Array;
  /** Row-major [terms, windowCount]: the window of the term in the part, or -1. */
  readonly entries: Int32Array;
}

export function rankRows(views: readonly RankedView[], ranking: TextRanking): TextHits {
  const lengthMax = views.reduce(
    (max, { parts }) => parts.reduce((most, part) => Math.max(most, part.lengthMax), max),
    0,
  );
  const norms = lengthNorms(lengthMax, ranking.averageLength, ranking);
  const partWindows = views.flatMap(({ parts }, view) =>
    parts.map((part) => boundWindows(part, view, ranking, norms)),
  );
  const top = new TopRows(
    ranking.k,
    views.map(({ ids }) => ids),
  );
  const scores = new Float64Array(WINDOW_ROWS);
  let scoredCount = 0;
  for (const { of, window, bound } of inOrderOfBounds(partWindows)) {
    if (bound < top.scoreMin || isBelow(bound, ranking.scoreMin)) break;
    const view = views[of.view]!;
    const from = Math.max(of.part.from, (of.first + window) << WINDOW_BITS);
    const to = Math.min(of.part.to, (of.first + window + 1) << WINDOW_BITS, view.rows.length);
    let row = nextSetBit(view.rows, from);
    if (row < 0 || row >= to) continue;
    scoreWindow(of, window, norms, scores);
    for (; row >= 0 && row < to; row = nextSetBit(view.rows, row + 1)) {
      const score = scores[row & (WINDOW_ROWS - 1)]!;
      scoredCount++;
      if (isBelow(score, ranking.scoreMin)) continue;
      if (ranking.after !== null && !isAfter(ranking.after, score, view.ids, row)) continue;
      top.offer(score, of.view, row);
    }
  }
  return { ...top.ranked(), viewCount: views.length, scoredCount };
}

function isBelow(score: number, scoreMin: number | null): boolean {
  return scoreMin !== null && Math.fround(score) < scoreMin;
}

function boundWindows(
  part: TextPart,
  view: number,
  { terms, weights }: TextRanking,
  norms: Float64Array,
): PartWindows {
  const first = part.from >>> WINDOW_BITS;
  const windowCount = ((part.to - 1) >>> WINDOW_BITS) - first + 1;
  const bounds = new Float64Array(windowCount);
  const entries = new Int32Array(terms.length * windowCount).fill(-1);
  for (const [i, term] of terms.entries()) {
    const index = findTerm(part, term);
    if (index < 0) continue;
    for (let at = part.windowStarts[index]!; at < part.windowStarts[index + 1]!; at++) {
      const window = part.windows[at]! - first;
      entries[i * windowCount + window] = at;
      const norm = norms[part.windowLengths[at]!]!;
      bounds[window]! += termScore(weights[i]!, part.windowCounts[at]!, norm);
    }
  }
  return { view, part, weights, first, windowCount, bounds, entries };
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
      if (bound > 0) windows.push({ of, window, bound });
    }
  }
  return windows.sort((a, b) => b.bound - a.bound);
}

/** The score of each row of a window, at the low bits of its number: terms in the order of their bytes. */
function scoreWindow(
  { part, weights, windowCount, entries }: PartWindows,
  window: number,
  norms: Float64Array,
  scores: Float64Array,
): void {
  const { rows, counts, lengths, from, windowPostings } = part;
  scores.fill(0);
  for (let i = 0; i < weights.length; i++) {
    const at = entries[i * windowCount + window]!;
    if (at < 0) continue;
    const weight = weights[i]!;
    const end = windowPostings[at + 1]!;
    for (let posting = windowPostings[at]!; posting < end; posting++) {
      const row = rows[posting]!;
      const norm = norms[lengths[row - from]!]!;
      scores[row & (WINDOW_ROWS - 1)]! += termScore(weight, counts[posting]!, norm);
    }
  }
}
