// Helpers of searches that score rows in the worker pool, range by range, with the same result for every engine.

import { sharedFloat32 } from '../../common/shared-array.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { SearchOptions } from './engine.js';
import type { TopRows } from './order.js';
import type { BlockHits } from './per-block.js';

/** Copies a vector into shared memory: a message to a worker would copy the whole buffer behind it. */
export function sharedCopy(vector: Float32Array): Float32Array {
  const copy = sharedFloat32(vector.length);
  copy.set(vector);
  return copy;
}

/**
 * Submits `perThread` ranges per thread at a time, so that other tasks get their turn, and calls `take` with
 * each result. Rejects with `overloaded`, and with the signal's reason.
 */
export async function runRanges<Range, Result>(
  { pool, task }: { readonly pool: WorkerPool; readonly task: Task<Range, Result> },
  ranges: Iterable<Range>,
  { signal, perThread = 1 }: Pick<SearchOptions, 'signal'> & { readonly perThread?: number },
  take: (result: Result) => void,
): Promise<void> {
  const remaining = ranges[Symbol.iterator]();
  const runRemaining = async () => {
    for (let next = remaining.next(); next.done !== true; next = remaining.next()) {
      signal?.throwIfAborted();
      take(await pool.run(task, next.value, { mayBeRefused: true }));
    }
  };
  await Promise.all(Array.from({ length: perThread * pool.threadCount }, runRemaining));
}

/** Returns the best hits of all ranges. */
export function mergeHits(top: TopRows, results: readonly BlockHits[]): BlockHits {
  let scannedCount = 0;
  let rescoredCount = 0;
  for (const { rows, scores, ...counts } of results) {
    scannedCount += counts.scannedCount;
    rescoredCount += counts.rescoredCount;
    for (let i = 0; i < rows.length; i++) top.offer(scores[i]!, rows[i]!);
  }
  return { ...top.take(), scannedCount, rescoredCount };
}

/** Returns the number of hits in all ranges. */
export function countHits(results: readonly BlockHits[]): number {
  return results.reduce((sum, { rows }) => sum + rows.length, 0);
}
