// Queries by a sparse vector: which rows of a snapshot match, and the search for the best of them by the dot
// product in the place of the engine.

import type { SparseVector } from '../../common/vectors.js';
import type { SparseIndexes } from '../../inverted/sparse-index.js';
import { countSparseBefore, matchSparse, rankSparse } from '../../inverted/sparse-search.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { SegmentView } from '../collection/snapshot.js';
import { createInvertedSearch, type InvertedSearch } from './inverted-search.js';

/** What is searched for, and in which of the sparse vectors. */
export interface SparseQuery {
  readonly using: string;
  readonly sparse: SparseVector;
}

interface SparseServices {
  readonly pool: WorkerPool;
  readonly sparseIndexes: SparseIndexes;
}

/**
 * @param rows the views of the snapshot with only the rows that pass the filter.
 * Rejects with `overloaded` and with the signal's reason.
 */
export async function openSparseSearch(
  { sparse: vector, using }: SparseQuery,
  rows: readonly SegmentView[],
  { pool, sparseIndexes }: SparseServices,
  signal: AbortSignal | undefined,
): Promise<InvertedSearch> {
  const having = rows.flatMap((view) => {
    const field = view.segment.vectorField(using);
    const column = field?.column();
    return column?.kind === 'sparse' ? { owner: field!, column, view } : [];
  });
  const passing = having.map(({ view }) => view);
  const parts = await Promise.all(
    having.map(({ owner, column, view: { segment, rowCount } }) => {
      const source = { ...column, rowCount: segment.rowCount };
      return sparseIndexes.partsOf(owner, { source, rowCount }, signal);
    }),
  );
  const searched = passing.map(({ rowCount, rows }, i) => ({
    parts: parts[i]!,
    rowCount,
    passing: rows,
  }));
  const matches = await matchSparse(pool, searched, vector);
  signal?.throwIfAborted();
  return createInvertedSearch(passing, parts, matches, {
    rank: (views, range) => rankSparse(pool, views, { vector, ...range }),
    countBefore: (views, positions) => countSparseBefore(pool, views, vector, positions),
  });
}
