// The rows that a search found, and scores as replies show them.

import type { SearchHits } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';

export interface Hit {
  readonly view: SegmentView;
  readonly row: number;
  /** Unrounded, because it decides the order. */
  readonly score: number;
}

/** The found rows, best first. */
export function toHits(views: readonly SegmentView[], found: SearchHits): readonly Hit[] {
  const { viewIndexes, rows, scores } = found;
  const hits: Hit[] = [];
  for (let i = 0; i < scores.length; i++) {
    hits.push({ view: views[viewIndexes[i]!]!, row: rows[i]!, score: scores[i]! });
  }
  return hits;
}

/** The first `count` hits without the vectors of these ids. The search must have asked for as many hits more. */
export function hitsWithout(
  ids: readonly string[],
  views: readonly SegmentView[],
  { found, count }: { readonly found: SearchHits; readonly count: number },
): readonly Hit[] {
  const hits = toHits(views, found);
  if (ids.length === 0) return hits.slice(0, count);
  const excludedIds = ids.map((id) => Buffer.from(id));
  return hits
    .filter(({ view, row }) => !excludedIds.some((id) => view.segment.idEquals(row, id)))
    .slice(0, count);
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Rounds to float32. Values beyond its range become the largest float32, since JSON has no infinity. */
export function toFloat32(value: number): number {
  return Math.fround(Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, value)));
}
