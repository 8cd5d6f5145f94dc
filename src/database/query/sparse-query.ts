// Queries by a sparse vector: which rows of a snapshot match, and the search for the best of them by the dot
// product in the place of the engine.

import { createFullBitmap } from '../../common/bitmap.js';
import type { SparseVector } from '../../common/types.js';
import type { SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { SparseIndexes } from '../../sparse/sparse-index.js';
import {
  countSparseBefore,
  matchSparse,
  type RankedSparse,
  rankSparse,
} from '../../sparse/sparse-search.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { SearchSource } from './search-source.js';

/** What is searched for, and in which of the sparse vectors. */
export interface SparseQuery {
  readonly using: string;
  readonly sparse: SparseVector;
}

interface SparseServices {
  readonly pool: WorkerPool;
  readonly sparseIndexes: SparseIndexes;
}

/** The search of one query. */
interface SparseSearch {
  /** The views with only the rows that match. */
  readonly views: readonly SegmentView[];
  /** The vector and the metric of its queries are not used. */
  readonly source: SearchSource;
}

/**
 * @param passing the views of the snapshot with only the rows that pass the filter.
 * Rejects with `overloaded` and with the signal's reason.
 */
export async function openSparseSearch(
  { sparse: vector, using }: SparseQuery,
  passing: readonly SegmentView[],
  { pool, sparseIndexes }: SparseServices,
  signal: AbortSignal | undefined,
): Promise<SparseSearch> {
  const parts = await Promise.all(
    passing.map(({ segment, rowCount }) => {
      const field = segment.sparseField(using);
      const source = { ...field.column(), rowCount: segment.rowCount };
      return sparseIndexes.partsOf(field, { source, rowCount }, signal);
    }),
  );
  const searched = passing.map(({ rowCount, rows }, i) => ({
    parts: parts[i]!,
    rowCount,
    passing: rows,
  }));
  const matches = await matchSparse(pool, searched, vector);
  signal?.throwIfAborted();
  const partsOf = new Map(passing.map(({ segment }, i) => [segment.key, parts[i]!]));
  const ranked = ({ views }: Pick<SearchQuery, 'views'>): RankedSparse[] =>
    views.map(({ block, rowCount, rows }) => ({
      // The keys of segments are those of their blocks.
      parts: partsOf.get(block.key)!,
      rows: rows ?? createFullBitmap(rowCount),
      ids: block.ids,
    }));
  return {
    views: passing.map((view, i) => ({ ...view, ...matches[i]! })),
    source: {
      async search(query): Promise<SearchHits> {
        const { k, after, scoreMin } = query;
        const ranking = { vector, k, after, scoreMin };
        const { scoredCount, ...found } = await rankSparse(pool, ranked(query), ranking);
        const scannedCount = query.views.reduce((sum, view) => sum + view.rowCount, 0);
        return { ...found, scannedCount, rescoredCount: scoredCount };
      },
      countBefore: (query, positions) => countSparseBefore(pool, ranked(query), vector, positions),
    },
  };
}
