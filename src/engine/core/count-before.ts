// Ranks: counts the rows that come before given rank keys in the order (score descending, id bytes
// ascending) of all rows of a query, exactly. An engine may have a faster way; otherwise every row is scored
// canonically in the worker pool.

import type { Bitmap } from '../../common/bitmap.js';
import {
  bucketOf,
  countsBefore,
  type RankKey,
  type SortedRankKeys,
  sortRankKeys,
} from '../../common/rank-key.js';
import type { Metric, VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { CountedQuery, Engine, SearchOptions } from './engine.js';
import { runRanges, sharedCopy } from './row-ranges.js';
import { scoreSelected } from './row-scores.js';

interface CountRange {
  readonly block: Pick<VectorBlock, 'dimension' | 'values' | 'ids'>;
  readonly metric: Metric;
  /** [dimension] float32, over a SharedArrayBuffer. */
  readonly vector: Float32Array;
  readonly rankKeys: SortedRankKeys;
  readonly bitmap: Bitmap | null;
  /** The rows from..to of the block. */
  readonly from: number;
  readonly to: number;
}

/** Returns the number of rows in each bucket of the keys, see `bucketOf`. */
export const countBeforeTask: Task<CountRange, Float64Array> = {
  name: 'engine.countBefore',
  run: countRange,
};

/** Values per task of the pool: about ten milliseconds of work, so that other tasks do not wait long. */
const RANGE_VALUES = 2 ** 24;

/** Ranges submitted to the pool per thread, so that a thread never waits for the next one. */
const RANGES_PER_THREAD = 2;

/**
 * The number of rows of the query's views that come strictly before each rank key. A rank key need not be
 * that of a row. Rejects with `overloaded`, and with the signal's reason.
 */
export async function countBefore(
  { engine, pool }: { readonly engine: Engine; readonly pool: WorkerPool },
  query: CountedQuery,
  rankKeys: readonly RankKey[],
  options: SearchOptions = {},
): Promise<Float64Array> {
  if (engine.countBefore !== undefined) return engine.countBefore(query, rankKeys, options);
  return countInPool(pool, query, rankKeys, options);
}

async function countInPool(
  pool: WorkerPool,
  { vector, metric, views }: CountedQuery,
  rankKeys: readonly RankKey[],
  { signal }: SearchOptions,
): Promise<Float64Array> {
  signal?.throwIfAborted();
  const { sorted, origins } = sortRankKeys(rankKeys);
  const shared = sharedCopy(vector);
  const rangeRowCount = Math.max(1, Math.floor(RANGE_VALUES / vector.length));
  const ranges: CountRange[] = views.flatMap(({ block, rowCount, rows }) => {
    const { dimension, values, ids } = block;
    const searched = { dimension, values, ids };
    const query = { block: searched, metric, vector: shared, rankKeys: sorted, bitmap: rows };
    return Array.from({ length: Math.ceil(rowCount / rangeRowCount) }, (_, i) => {
      const from = i * rangeRowCount;
      return { ...query, from, to: Math.min(from + rangeRowCount, rowCount) };
    });
  });
  const countsByBucket = new Float64Array(rankKeys.length + 1);
  const options = { perThread: RANGES_PER_THREAD, ...(signal && { signal }) };
  await runRanges({ pool, task: countBeforeTask }, ranges, options, (counts) => {
    for (const [bucket, count] of counts.entries()) countsByBucket[bucket]! += count;
  });
  return countsBefore(countsByBucket, origins);
}

function countRange({ block, metric, vector, rankKeys, bitmap, from, to }: CountRange) {
  const { dimension, values, ids } = block;
  const counts = new Float64Array(rankKeys.scores.length + 1);
  scoreSelected({ metric, dimension, values, vectors: vector }, { bitmap, from, to }, take);
  return counts;

  function take(rows: Uint32Array, scores: Float64Array): void {
    for (let i = 0; i < rows.length; i++) counts[bucketOf(rankKeys, scores[i]!, ids, rows[i]!)]!++;
  }
}
