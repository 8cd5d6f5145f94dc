// Searches by inverted indexes of texts and sparse vectors, which rank the matching rows of a snapshot
// without the engine.

import { type Bitmap, createFullBitmap } from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import type { Utf8Column } from '../../common/types.js';
import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import { type SegmentView, withRows } from '../collection/snapshot.js';
import type { OpenRanking } from './ranking.js';

/** The rows of a segment to rank, with its index. */
interface IndexedRows<Run> {
  readonly runs: readonly Run[];
  readonly rows: Bitmap;
  readonly ids: Utf8Column;
}

interface InvertedRanking<Run> {
  rank(
    views: readonly IndexedRows<Run>[],
    range: Pick<SearchQuery, 'k' | 'after' | 'scoreMin'>,
  ): Promise<
    Pick<SearchHits, 'viewIndexes' | 'rows' | 'scores'> & { readonly scoredCount: number }
  >;
  countBefore(
    views: readonly IndexedRows<Run>[],
    rankKeys: readonly RankKey[],
  ): Promise<Float64Array>;
}

/**
 * @param runs the runs of the index of each view.
 * @param matches the rows of each view that match and pass the filters.
 */
export function openInverted<Run>(
  views: readonly SegmentView[],
  runs: readonly (readonly Run[])[],
  matches: readonly Pick<SegmentView, 'rows' | 'visibleCount'>[],
  { rank, countBefore }: InvertedRanking<Run>,
): OpenRanking {
  const runsOf = new Map(views.map(({ segment }, i) => [segment, runs[i]!]));
  const rowsOf = (searched: readonly SegmentView[]) =>
    searched.map(({ segment, metadata: { ids }, rowCount, rows }): IndexedRows<Run> => {
      return { runs: runsOf.get(segment)!, rows: rows ?? createFullBitmap(rowCount), ids };
    });
  return {
    views: withRows(views.map((view, i) => ({ ...view, ...matches[i]! }))),
    async search({ views: searched, k, after, scoreMin }) {
      const found = await rank(rowsOf(searched), { k, after, scoreMin });
      const { viewIndexes, rows, scores, scoredCount } = found;
      const scannedCount = searched.reduce((sum, { rowCount }) => sum + rowCount, 0);
      return { viewIndexes, rows, scores, scannedCount, rescoredCount: scoredCount };
    },
    countBefore: (searched, rankKeys) => countBefore(rowsOf(searched), rankKeys),
  };
}
