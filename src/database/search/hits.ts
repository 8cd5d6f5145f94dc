// The rows that a search finds, and the scores of replies.

import type { SearchHits } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';

export interface Hit {
  readonly view: SegmentView;
  readonly row: number;
  /** As the ranking gives it: unrounded, for the order. */
  readonly score: number;
}

/** Best first. */
export function toHits(views: readonly SegmentView[], found: SearchHits): readonly Hit[] {
  return Array.from(found.viewIndexes, (viewIndex, i) => ({
    view: views[viewIndex]!,
    row: found.rows[i]!,
    score: found.scores[i]!,
  }));
}

/** The first hits without the vectors of these ids. A search for k others asks for as many more. */
export function hitsWithout(
  ids: readonly string[],
  views: readonly SegmentView[],
  { found, count }: { readonly found: SearchHits; readonly count: number },
): readonly Hit[] {
  const excludedIds = ids.map((id) => Buffer.from(id));
  const hits = toHits(views, found);
  if (excludedIds.length === 0) return hits.slice(0, count);
  return hits
    .filter(({ view, row }) => !excludedIds.some((id) => view.segment.idEquals(row, id)))
    .slice(0, count);
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Rounded to float32; what lies beyond becomes the largest float32, since JSON has no infinity. */
export function toFloat32(value: number): number {
  return Math.fround(Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, value)));
}
