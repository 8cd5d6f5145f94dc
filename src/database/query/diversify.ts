// Maximal marginal relevance: repeatedly chooses the candidate that is near the query and far from those already
// chosen. A choice depends only on earlier choices, so that a longer result begins with the shorter one.

import type { Metric } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import { sumOfSquares } from '../../engine/core/canonical.js';
import { publicScore } from '../../engine/core/engine.js';
import { createRowScorer } from '../../engine/core/row-scores.js';
import type { Task, WorkerPool } from '../../platform/pool.js';

export interface Diversity {
  /** From 0, which prefers different candidates, to 1, which keeps the order of candidates. */
  readonly lambda: number;
  /** The number of nearest vectors to choose from. */
  readonly candidateCount: number;
}

/** Candidates of a query, nearest first. */
export interface Candidates {
  readonly metric: Metric;
  /** Row-major [count, dimension] float32, over a SharedArrayBuffer. */
  readonly values: Float32Array;
  /** [count] public scores. */
  readonly relevances: Float64Array;
}

interface DiversifyInput extends Candidates {
  readonly lambda: number;
  /** The number of candidates to choose; at most all. */
  readonly chosenCount: number;
  /** Shared [1] int32, set to 1 when the result is no longer needed. */
  readonly stop: Int32Array;
}

/** Returns the indexes of the chosen candidates, in order. */
export const diversifyTask: Task<DiversifyInput, Uint32Array> = {
  name: 'query.diversify',
  run: diversify,
};

/** Up to this many products, which take about a millisecond, are computed on the calling thread. */
const INLINE_PRODUCTS_MAX = 2 ** 20;

/** The indexes of the chosen candidates, in order. Rejects with `overloaded` and the signal's reason. */
export async function chooseDiverse(
  pool: WorkerPool,
  candidates: Candidates,
  options: { readonly lambda: number; readonly chosenCount: number },
  signal: AbortSignal | undefined,
): Promise<Uint32Array> {
  const input = { ...candidates, ...options, stop: new Int32Array(new SharedArrayBuffer(4)) };
  if (candidates.values.length * options.chosenCount <= INLINE_PRODUCTS_MAX) {
    return diversify(input);
  }
  const ignoreAbort = whenAborted(signal, () => Atomics.store(input.stop, 0, 1));
  const chosen = await pool.run(diversifyTask, input, { mayBeRefused: true }).finally(ignoreAbort);
  signal?.throwIfAborted();
  return chosen;
}

/**
 * Chooses the first candidate, then repeatedly the one with the highest
 * lambda * relevance − (1 − lambda) * (the highest public score between it and a chosen one);
 * the first of equal ones.
 */
function diversify(input: DiversifyInput): Uint32Array {
  const { metric, values, relevances, lambda, chosenCount, stop } = input;
  const count = relevances.length;
  const dimension = values.length / count;
  const chosen = new Uint32Array(Math.min(chosenCount, count));
  const remaining = Uint32Array.from(relevances.keys());
  /** x·x of the remaining candidates, at the same indexes. */
  const squares = relevances.map((_, i) => sumOfSquares(values, i * dimension, dimension));
  const scores = new Float64Array(count);
  /** The score between each candidate and the nearest chosen one. */
  const nearness = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  let best = 0;
  for (let step = 0; step < chosen.length; step++) {
    const next = remaining[best]!;
    chosen[step] = next;
    if (Atomics.load(stop, 0) !== 0) break;
    remaining.copyWithin(best, best + 1);
    squares.copyWithin(best, best + 1);
    const left = count - step - 1;
    const vectors = values.subarray(next * dimension, (next + 1) * dimension);
    const score = createRowScorer({ metric, dimension, values, vectors });
    score(remaining.subarray(0, left), scores, squares.subarray(0, left));
    let bestValue = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < left; at++) {
      const i = remaining[at]!;
      nearness[i] = Math.max(nearness[i]!, publicScore(metric, scores[at]!));
      const value = lambda * relevances[i]! - (1 - lambda) * nearness[i]!;
      if (value <= bestValue) continue;
      bestValue = value;
      best = at;
    }
  }
  return chosen;
}
