// Finds the rows that share an index with a sparse vector, and the best of them by dot product. Products
// are added in float64, in the order of ascending indices. A product of two float32 values is exact in
// float64, so a score depends on this order only.

import { type Bitmap, createBitmap } from '../common/bitmap.js';
import type { RankKey, SortedRankKeys } from '../common/rank-key.js';
import type { SparseVector } from '../common/vectors.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { addRows, type MatchedRows, narrowTo } from './containing-rows.js';
import { countPostings, WINDOW_ROWS } from './posting-lists.js';
import { findIndex, type SparseRun } from './sparse-run.js';
import { countInGroups, rankInGroups, runInGroups, type ViewsInput } from './view-groups.js';
import {
  countInBuckets,
  type RankedHits,
  type RankedRange,
  type RankedView,
  type RunScorer,
  searchWindows,
} from './window-search.js';

/** A segment at a sequence: its index and the rows that pass the filter of a query. */
export interface SearchedSparse {
  /** In the order of their rows; together they cover 0..rowCount and maybe more. */
  readonly runs: readonly SparseRun[];
  readonly rowCount: number;
  /** The visible rows that pass; null for all rows of the segment. */
  readonly passing: Bitmap | null;
}

export type RankedSparse = RankedView<SparseRun>;

interface SparseScoring {
  readonly vector: SparseVector;
}

interface SparseRanking extends RankedRange, SparseScoring {}

export const matchSparseTask: Task<ViewsInput<SearchedSparse, SparseVector>, MatchedRows[]> = {
  name: 'sparse.match',
  run: ({ views, work: { indices } }) =>
    views.map(({ runs, rowCount, passing }) => {
      const matching = createBitmap(rowCount);
      for (const run of runs) {
        for (const index of indices) addRows(matching, run, findIndex(run, index));
      }
      return narrowTo(matching, passing);
    }),
};

export const rankSparseTask: Task<ViewsInput<RankedSparse, SparseRanking>, RankedHits> = {
  name: 'sparse.rank',
  run: ({ views, work }) => searchWindows(views, work, (run) => scorerOf(run, work.vector)),
};

type CountWork = SparseScoring & { readonly rankKeys: SortedRankKeys };

export const countSparseTask: Task<ViewsInput<RankedSparse, CountWork>, Float64Array> = {
  name: 'sparse.count',
  run: ({ views, work: { vector, rankKeys } }) =>
    countInBuckets(views, rankKeys, (run) => scorerOf(run, vector)),
};

/** Returns the rows of each view that match and pass, in the order of the views. Rejects with `overloaded`. */
export async function matchSparse(
  pool: WorkerPool,
  views: readonly SearchedSparse[],
  vector: SparseVector,
): Promise<readonly MatchedRows[]> {
  const input = { views, work: vector };
  const groups = await runInGroups(pool, matchSparseTask, input, itemsIn(vector));
  return groups.flat();
}

/** Returns the best rows of all views. Rejects with `overloaded`. */
export function rankSparse(
  pool: WorkerPool,
  views: readonly RankedSparse[],
  ranking: SparseRanking,
): Promise<RankedHits> {
  const input = { views, work: ranking };
  return rankInGroups(pool, rankSparseTask, input, itemsIn(ranking.vector));
}

/** Counts the rows of all views before each rank key. Rejects with `overloaded`. */
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
  return ({ runs }: { readonly runs: readonly SparseRun[] }) => {
    let count = 0;
    for (const run of runs) {
      for (const index of indices) count += countPostings(run, findIndex(run, index));
    }
    return count;
  };
}

function scorerOf(run: SparseRun, { indices, values: weights }: SparseVector): RunScorer {
  const { rows, values, windowMins, windowMaxs } = run;
  return {
    lists: Array.from(indices, (index) => findIndex(run, index)),
    boundOf(key, at) {
      const weight = weights[key]!;
      // A row of the window may lack the index and then adds nothing.
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
