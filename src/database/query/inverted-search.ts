// What the searches by inverted indexes, of texts and of sparse vectors, have in common: they rank the rows of
// a snapshot that match, in the place of the engine.

import { type Bitmap, createFullBitmap } from '../../common/bitmap.js';
import type { Utf8Column } from '../../common/types.js';
import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { RankedSource } from './search-source.js';

/** The rows of a segment that are ranked, and the index of it. */
interface IndexedRows<Part> {
  readonly parts: readonly Part[];
  readonly rows: Bitmap;
  readonly ids: Utf8Column;
}

/** How the rows are ranked. */
interface InvertedRanking<Part> {
  rank(
    views: readonly IndexedRows<Part>[],
    range: Pick<SearchQuery, 'k' | 'after' | 'scoreMin'>,
  ): Promise<
    Pick<SearchHits, 'viewIndexes' | 'rows' | 'scores'> & { readonly scoredCount: number }
  >;
  countBefore(
    views: readonly IndexedRows<Part>[],
    positions: readonly Position[],
  ): Promise<Float64Array>;
}

export interface InvertedSearch {
  /** The views with only the rows that match. */
  readonly views: readonly SegmentView[];
  /** The vector and the metric of its queries are not used. */
  readonly source: RankedSource;
}

/**
 * @param parts of the index of each view.
 * @param matches the rows of each view that match and pass.
 */
export function createInvertedSearch<Part>(
  views: readonly SegmentView[],
  parts: readonly (readonly Part[])[],
  matches: readonly Pick<SegmentView, 'rows' | 'visibleCount'>[],
  { rank, countBefore }: InvertedRanking<Part>,
): InvertedSearch {
  const partsOf = new Map(views.map(({ segment }, i) => [segment.key, parts[i]!]));
  const rowsOf = (query: Pick<SearchQuery, 'views'>): IndexedRows<Part>[] =>
    query.views.map(({ block, rowCount, rows }) => ({
      // The keys of segments are those of their blocks.
      parts: partsOf.get(block.key)!,
      rows: rows ?? createFullBitmap(rowCount),
      ids: block.ids,
    }));
  return {
    views: views.map((view, i) => ({ ...view, ...matches[i]! })),
    source: {
      async search(query) {
        const { k, after, scoreMin } = query;
        const found = await rank(rowsOf(query), { k, after, scoreMin });
        const { viewIndexes, rows, scores, scoredCount } = found;
        const scannedCount = query.views.reduce((sum, view) => sum + view.rowCount, 0);
        return { viewIndexes, rows, scores, scannedCount, rescoredCount: scoredCount };
      },
      countBefore: (query, positions) => countBefore(rowsOf(query), positions),
    },
  };
}
