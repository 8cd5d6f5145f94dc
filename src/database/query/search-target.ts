// Where a query searches, in the terms of the database (segment views) and of the engine (block
// views), and the translation of the engine's results back into rows of segments.

import type { BlockView, SearchHits } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';

/** The views that show any row, in both forms, in the same order. Queries of a batch share them. */
export interface SearchTarget {
  readonly segmentViews: readonly SegmentView[];
  readonly blockViews: readonly BlockView[];
}

export interface Hit {
  readonly view: SegmentView;
  readonly row: number;
  /** As the engine gives it: unrounded, for the order. */
  readonly score: number;
}

export function searchTarget(views: readonly SegmentView[]): SearchTarget {
  const segmentViews = views.filter(({ visibleCount }) => visibleCount > 0);
  const blockViews = segmentViews.map(({ block, rowCount, rows }) => ({ block, rowCount, rows }));
  return { segmentViews, blockViews };
}

/** Best first. */
export function toHits({ segmentViews }: SearchTarget, found: SearchHits): readonly Hit[] {
  return Array.from(found.viewIndexes, (viewIndex, i) => ({
    view: segmentViews[viewIndex]!,
    row: found.rows[i]!,
    score: found.scores[i]!,
  }));
}

/** Without the vectors of these ids. A search for k others asks for as many more. */
export function withoutIds(hits: readonly Hit[], ids: readonly Uint8Array[]): readonly Hit[] {
  if (ids.length === 0) return hits;
  return hits.filter(({ view, row }) => !ids.some((id) => view.segment.idEquals(row, id)));
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Rounded to float32; what lies beyond becomes the largest float32, since JSON has no infinity. */
export function toFloat32(value: number): number {
  return Math.fround(Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, value)));
}
