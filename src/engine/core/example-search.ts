// Searches by several examples: the score of a row is a formula of its canonical scores with each of them.
// Every row of the views is scored in the worker pool, because a bound on one example's score does not bound
// the formula; the result is exact and the same with every engine.

import type { VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { publicScore, type SearchHits, type SearchOptions, type SearchQuery } from './engine.js';
import { scoreFloor, TopRows } from './order.js';
import { buffersOf, type PackedQuery, packQuery } from './packed-queries.js';
import { type BlockHits, type BlockQuery, searchPerBlock } from './per-block.js';
import { countHits, mergeHits, runRanges, sharedCopy } from './row-ranges.js';
import { scoreSelected } from './row-scores.js';

/**
 * How a row's public scores with the examples combine into its score. The first `positiveCount` examples are
 * positive, the next ones negative. `discover` and `context` have equally many of both, and the i-th positive
 * and the i-th negative one form a pair; the target of `discover` is the last example.
 */
export interface Formula {
  readonly kind: 'best_score' | 'sum_scores' | 'discover' | 'context';
  readonly positiveCount: number;
}

/** `vector` holds all examples, row-major [exampleCount, dimension]. Scores are public without conversion. */
export interface ExampleQuery extends SearchQuery {
  readonly formula: Formula;
}

interface ExampleRange {
  readonly block: VectorBlock;
  readonly query: PackedQuery;
  /** Row-major [exampleCount, dimension] float32, over a SharedArrayBuffer. */
  readonly examples: Float32Array;
  readonly formula: Formula;
  /** The rows from..to of the block. */
  readonly from: number;
  readonly to: number;
}

export const searchExamplesTask: Task<ExampleRange, BlockHits> = {
  name: 'engine.searchExamples',
  priority: 'search',
  run: searchRange,
  transfer: (hits) => buffersOf([hits]),
};

/** Products of values per task: one or two milliseconds in the kernels, ten in TypeScript. */
const RANGE_PRODUCTS = 2 ** 23;

/** Rejects with `overloaded`, and with the signal's reason. */
export async function searchByExamples(
  pool: WorkerPool,
  { formula, ...query }: ExampleQuery,
  options: SearchOptions,
): Promise<SearchHits> {
  const searchBlock = async (block: VectorBlock, queries: readonly BlockQuery[]) =>
    Promise.all(queries.map((one) => searchBlockRanges(pool, block, one, formula, options)));
  const [hits] = await searchPerBlock([query], searchBlock, options);
  return hits!;
}

async function searchBlockRanges(
  pool: WorkerPool,
  block: VectorBlock,
  one: BlockQuery,
  formula: Formula,
  options: SearchOptions,
): Promise<BlockHits> {
  const examples = sharedCopy(one.vector);
  const query = packQuery(one);
  const { rowCount } = query;
  const rangeRowCount = Math.max(1, Math.floor(RANGE_PRODUCTS / examples.length));
  const ranges = Array.from({ length: Math.ceil(rowCount / rangeRowCount) }, (_, i) => {
    const from = i * rangeRowCount;
    const to = Math.min(from + rangeRowCount, rowCount);
    return { block, query, examples, formula, from, to };
  });
  const results: BlockHits[] = [];
  await runRanges({ pool, task: searchExamplesTask }, ranges, options, (hits) => {
    results.push(hits);
  });
  if (results.length === 1) return results[0]!;
  return mergeHits(createTop(block, query, countHits(results)), results);
}

function searchRange({ block, query, examples, formula, from, to }: ExampleRange): BlockHits {
  const { dimension, values } = block;
  const { metric, rows: bitmap } = query;
  const ofRow = new Float64Array(examples.length / dimension);
  const top = createTop(block, query, to - from);
  let scoredCount = 0;
  scoreSelected({ metric, dimension, values, vectors: examples }, { bitmap, from, to }, take);
  return { ...top.take(), scannedCount: scoredCount, rescoredCount: scoredCount };

  function take(rows: Uint32Array, scores: Float64Array): void {
    for (let i = 0; i < rows.length; i++) {
      for (let example = 0; example < ofRow.length; example++) {
        ofRow[example] = publicScore(metric, scores[i * ofRow.length + example]!);
      }
      top.offer(combineScores(formula, ofRow), rows[i]!);
    }
    scoredCount += rows.length;
  }
}

/** Uses the floor of dot products, which are public scores without conversion, as those of formulas are. */
function createTop(block: VectorBlock, query: PackedQuery, rowCount: number): TopRows {
  const { k, after, scoreMin } = query;
  return new TopRows(k, rowCount, block.ids, { floor: scoreFloor('dot', scoreMin), after });
}

/**
 * The score of a row from its public scores with the examples; never −0. With s(x) = (1 + f(x)) / 2 and
 * f(x) = x / (1 + |x|), the highest positive score p and the highest negative score n:
 *   best_score  s(p) where p > n, else −s(n)
 *   sum_scores  the sum of the positive scores, minus the sum of the negative ones
 *   discover    s(target score), plus 1 for each pair whose positive is nearer, minus 1 for each whose
 *               negative is
 *   context     the sum of f(min(0, positive score − negative score)) of all pairs
 * Sums are in the order of the examples. Qdrant defines these scores, but subtracts an epsilon from each
 * difference of `context`.
 */
export function combineScores({ kind, positiveCount }: Formula, scores: Float64Array): number {
  switch (kind) {
    case 'best_score': {
      const positive = highest(scores, 0, positiveCount);
      const negative = highest(scores, positiveCount, scores.length);
      return positive > negative ? scaledToUnit(positive) : 0 - scaledToUnit(negative);
    }
    case 'sum_scores':
      return scores.reduce((sum, score, i) => (i < positiveCount ? sum + score : sum - score), 0);
    case 'discover': {
      let rank = 0;
      for (let i = 0; i < positiveCount; i++) {
        rank += Math.sign(scores[i]! - scores[positiveCount + i]!);
      }
      return rank + scaledToUnit(scores[2 * positiveCount]!);
    }
    case 'context': {
      let sum = 0;
      for (let i = 0; i < positiveCount; i++) {
        sum += softsign(Math.min(0, scores[i]! - scores[positiveCount + i]!));
      }
      return sum;
    }
  }
}

function highest(scores: Float64Array, from: number, to: number): number {
  let score = Number.NEGATIVE_INFINITY;
  for (let i = from; i < to; i++) score = Math.max(score, scores[i]!);
  return score;
}

function softsign(x: number): number {
  return x / (1 + Math.abs(x));
}

/** Maps x to 0..1, keeping the order. */
function scaledToUnit(x: number): number {
  return (1 + softsign(x)) / 2;
}
