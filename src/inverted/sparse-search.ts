// The rows of segments that have an index in common with a sparse vector, and the best of them by the dot
// product: in float64, the products added in the order of ascending indices. A product of two float32 is
// exact in float64, so that a score depends on this order only.

import { type Bitmap, createBitmap } from '../common/bitmap.js';
import type { RankKey, SortedRankKeys } from '../common/rank-key.js';
import type { SparseVector } from '../common/vectors.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { addRows, type MatchedRows, narrowTo } from './containing-rows.js';
import { countPostings, WINDOW_ROWS } from './posting-lists.js';
import { findIndex, type SparsePart } from './sparse-part.js';
import { countInGroups, rankInGroups, runInGroups, type ViewsInput } from './view-groups.js';
import {
  countInBuckets,
  type PartScores,
  type RankedHits,
  type RankedRange,
  type RankedView,
  searchWindows,
} from './window-search.js';

/** A segment at a sequence, its index, and the rows of it that pass the filter of a query. */
export interface SearchedSparse {
  /** In the order of their rows; together they cover 0..rowCount, and maybe more. */
  readonly parts: readonly SparsePart[];
  readonly rowCount: number;
  /** Visible ones; null for all of the segment's rows. */
  readonly passing: Bitmap | null;
}

export type RankedSparse = RankedView<SparsePart>;

/** How rows are scored. */
interface SparseScoring {
  readonly vector: SparseVector;
}

interface SparseRanking extends RankedRange, SparseScoring {}

export const matchSparseTask: Task<ViewsInput<SearchedSparse, SparseVector>, MatchedRows[]> = {
  name: 'sparse.match',
  run: ({ views, work: { indices } }) =>
    views.map(({ parts, rowCount, passing }) => {
      const matching = createBitmap(rowCount);
      for (const part of parts) {
        for (const index of indices) addRows(matching, part, findIndex(part, index));
      }
      return narrowTo(matching, passing);
    }),
};

export const rankSparseTask: Task<ViewsInput<RankedSparse, SparseRanking>, RankedHits> = {
  name: 'sparse.rank',
  run: ({ views, work }) => searchWindows(views, work, (part) => scoresOf(part, work.vector)),
};

type CountWork = SparseScoring & { readonly rankKeys: SortedRankKeys };

export const countSparseTask: Task<ViewsInput<RankedSparse, CountWork>, Float64Array> = {
  name: 'sparse.count',
  run: ({ views, work: { vector, rankKeys } }) =>
    countInBuckets(views, rankKeys, (part) => scoresOf(part, vector)),
};

/** Of each view, in order, the rows that match and pass. Rejects with `overloaded`. */
export async function matchSparse(
  pool: WorkerPool,
  views: readonly SearchedSparse[],
  vector: SparseVector,
): Promise<readonly MatchedRows[]> {
  const input = { views, work: vector };
  const groups = await runInGroups(pool, matchSparseTask, input, itemsIn(vector));
  return groups.flat();
}

/** The best rows of all views. Rejects with `overloaded`. */
export function rankSparse(
  pool: WorkerPool,
  views: readonly RankedSparse[],
  ranking: SparseRanking,
): Promise<RankedHits> {
  const input = { views, work: ranking };
  return rankInGroups(pool, rankSparseTask, input, itemsIn(ranking.vector));
}

/** The number of rows of all views before each rank key. Rejects with `overloaded`. */
export function countSparseBefore(
  pool: WorkerPool,
  views: readonly RankedSparse[],
  vector: SparseVector,
  rankKeys: readonly RankKey[],
): Promise<Float64Array> {
  const input = { views, work: { vector }, rankKeys };
  return countInGroups(pool, countSparseTask, input, itemsIn(vector));
}

function itemsIn({ indices }: SparseVector) {
  return ({ parts }: { readonly parts: readonly SparsePart[] }) => {
    let count = 0;
    for (const part of parts) {
      for (const index of indices) count += countPostings(part, findIndex(part, index));
    }
    return count;
  };
}

function scoresOf(part: SparsePart, { indices, values: weights }: SparseVector): PartScores {
  const { rows, values, windowMins, windowMaxs } = part;
  return {
    lists: Array.from(indices, (index) => findIndex(part, index)),
    boundOf(key, at) {
      const weight = weights[key]!;
      // A row of the window may lack the index, which adds nothing.
      return Math.max(0, weight * (weight > 0 ? windowMaxs[at]! : windowMins[at]!));
    },
    addScores(key, from, to, scores) {
      const weight = weights[key]!;
      for (let posting = from; posting < to; posting++) {
        scores[rows[posting]! & (WINDOW_ROWS - 1)]! += weight * values[posting]!;
      }
    },
  };
}
