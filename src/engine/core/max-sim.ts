// Searches by multi-vectors: the score of a row is MaxSim, the sum over the vectors of the query, in their
// order, of the highest canonical score with any of the row's vectors. Rows are scored in the worker pool, the
// same with every engine. A row is abandoned as soon as a bound shows that it is not among the k best.

import { nextSetBit } from '../../common/bitmap.js';
import type { Utf8Column, VectorBlock } from '../../common/types.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { sumOfSquares } from './canonical.js';
import type { SearchHits, SearchOptions, SearchQuery } from './engine.js';
import { scoreFloor, TopRows } from './order.js';
import { buffersOf, type PackedQuery, packQuery } from './packed-queries.js';
import { type BlockHits, type BlockQuery, searchPerBlock } from './per-block.js';
import { countHits, mergeHits, runRanges, sharedCopy } from './row-ranges.js';
import { createRowScorer, type RowScorer } from './row-scores.js';

/** The fields of a block of multi-vectors that are read. */
type MultiVectors = Required<Pick<VectorBlock, 'dimension' | 'starts' | 'values'>>;

interface MaxSimRange {
  readonly ids: Utf8Column;
  readonly column: MultiVectors;
  readonly query: PackedQuery;
  /** Row-major [vectorCount, dimension] float32, over a SharedArrayBuffer. */
  readonly vectors: Float32Array;
  /** Rows with lower scores are not among the k best. */
  readonly floor: number;
  /** The rows from..to of the block. */
  readonly from: number;
  readonly to: number;
}

export const searchMaxSimTask: Task<MaxSimRange, BlockHits> = {
  name: 'engine.searchMaxSim',
  priority: 'search',
  run: searchRange,
  transfer: (hits) => buffersOf([hits]),
};

/** Products of values per task: two to four milliseconds in the kernels, twenty in TypeScript. */
const RANGE_PRODUCTS = 2 ** 24;

/** Vectors of the query that are scored between two checks of the bound. */
const STEP_VECTORS = 8;

/**
 * The bound: with p the sum of the first maxima and u[i] at least as high as the i-th maximum, the score is
 * at most (((p + u[i]) + u[i + 1]) + …), since rounding to nearest is monotone and the score is summed in the
 * same order. Under cosine u is 1, to which scores are clamped. For dot products u[i] is |q[i]| * max |x| of the
 * row's vectors, times 1 + 2^-20: the canonical sum of n products is at most (1 + n * 2^-53) * |q| * |x| with
 * n = 16 384 at most, and the roots, squares and products of the bound are off by less than that together.
 */
const BOUND_SLACK = 1 + 2 ** -20;

/**
 * Searches rows by MaxSim. The `vector` of the query holds all its vectors, row-major [vectorCount, dimension],
 * and every searched row has a multi-vector. Scores are public without conversion. Rejects with `overloaded`,
 * and with the signal's reason.
 */
export async function searchByMaxSim(
  pool: WorkerPool,
  query: SearchQuery,
  options: SearchOptions,
): Promise<SearchHits> {
  const best = new BestScores(query.k, scoreFloor('dot', query.scoreMin));
  const vectors = sharedCopy(query.vector);
  // Blocks are searched one after another, so that the best scores of the first ones spare work in the others.
  // After a failure the remaining blocks fail with the same error.
  let previous: Promise<unknown> = Promise.resolve();
  const searchBlock = (block: VectorBlock, queries: readonly BlockQuery[]) => {
    const { ids, dimension, starts, values } = block;
    const column = { dimension, starts: starts!, values };
    const found = previous.then(() =>
      Promise.all(
        queries.map((one) => {
          const input = { ids, column, query: packQuery(one), vectors };
          return searchBlockRanges(pool, input, best, options);
        }),
      ),
    );
    previous = found;
    return found;
  };
  const [hits] = await searchPerBlock([query], searchBlock, options);
  return hits!;
}

async function searchBlockRanges(
  pool: WorkerPool,
  input: Omit<MaxSimRange, 'floor' | 'from' | 'to'>,
  best: BestScores,
  options: SearchOptions,
): Promise<BlockHits> {
  const results: BlockHits[] = [];
  await runRanges({ pool, task: searchMaxSimTask }, ranges(), options, (hits) => {
    best.add(hits.scores);
    results.push(hits);
  });
  const top = createTop({ ...input, floor: Number.NEGATIVE_INFINITY }, countHits(results));
  return mergeHits(top, results);

  /** Each range gets the floor known when it is submitted. */
  function* ranges(): Generator<MaxSimRange> {
    for (const range of cutRanges(input)) yield { ...input, ...range, floor: best.floor };
  }
}

/** Cuts the rows into ranges with about as many products each. */
function* cutRanges({
  column: { starts },
  query: { rowCount },
  vectors,
}: Pick<MaxSimRange, 'column' | 'query' | 'vectors'>): Generator<{ from: number; to: number }> {
  const vectorsMax = Math.max(1, Math.floor(RANGE_PRODUCTS / vectors.length));
  for (let from = 0; from < rowCount; ) {
    let to = from + 1;
    while (to < rowCount && starts[to + 1]! - starts[from]! <= vectorsMax) to++;
    yield { from, to };
    from = to;
  }
}

/** The k best scores of a query so far: the lowest of them bounds what remains. */
class BestScores {
  readonly #k: number;
  #floor: number;
  /** Scores that may be among the k best, at most 2k. */
  #scores: number[] = [];

  constructor(k: number, floor: number) {
    this.#k = k;
    this.#floor = floor;
  }

  get floor(): number {
    return this.#floor;
  }

  add(found: Float64Array): void {
    for (const score of found) {
      if (score >= this.#floor) this.#scores.push(score);
      if (this.#scores.length === 2 * this.#k) this.#cut();
    }
  }

  /** Sorts only once for k scores, so that each costs little even on a deep page, where k is large. */
  #cut(): void {
    this.#scores = this.#scores.sort((a, b) => b - a).slice(0, this.#k);
    this.#floor = Math.max(this.#floor, this.#scores[this.#k - 1]!);
  }
}

function searchRange(range: MaxSimRange): BlockHits {
  const { query, column, from, to } = range;
  const top = createTop(range, to - from);
  const score = createMaxSim(range);
  let scannedCount = 0;
  let rescoredCount = 0;
  const next = (row: number) => (query.rows === null ? row : nextSetBit(query.rows, row));
  for (let row = next(from); row !== -1 && row < to; row = next(row + 1)) {
    const found = score(column.starts[row]!, column.starts[row + 1]!, top.cutoff);
    scannedCount++;
    if (found === null) continue;
    rescoredCount++;
    top.offer(found, row);
  }
  return { ...top.take(), scannedCount, rescoredCount };
}

function createTop(
  { query, ids, floor }: Pick<MaxSimRange, 'query' | 'ids' | 'floor'>,
  rowCount: number,
): TopRows {
  return new TopRows(query.k, rowCount, ids, { floor, after: query.after });
}

/** Returns the score of the row with the vectors `start..end`, or null if a bound of it is below the cutoff. */
type MaxSim = (start: number, end: number, cutoff: number) => number | null;

function createMaxSim({ column, query: { metric }, vectors }: MaxSimRange): MaxSim {
  const { dimension, values } = column;
  const rows = { metric, dimension, values };
  const vectorCount = vectors.length / dimension;
  const steps: { readonly score: RowScorer; readonly count: number }[] = [];
  for (let first = 0; first < vectorCount; first += STEP_VECTORS) {
    const count = Math.min(STEP_VECTORS, vectorCount - first);
    const cut = vectors.slice(first * dimension, (first + count) * dimension);
    steps.push({ score: createRowScorer({ ...rows, vectors: cut }), count });
  }
  const bounds = boundsOf(vectors, dimension);
  const longestOf = metric === 'cosine' ? null : createMaxNorm(column);
  let numbers = new Uint32Array(0);
  let scores = new Float64Array(0);

  return (start, end, cutoff) => {
    const count = end - start;
    if (numbers.length < count) {
      numbers = new Uint32Array(count);
      scores = new Float64Array(count * STEP_VECTORS);
    }
    for (let i = 0; i < count; i++) numbers[i] = start + i;
    const rowNumbers = numbers.subarray(0, count);
    const isBounded = cutoff !== Number.NEGATIVE_INFINITY;
    const longest = isBounded && longestOf !== null ? longestOf(rowNumbers) : 0;
    let sum = 0;
    let place = 0;
    for (const step of steps) {
      const stepScores = scores.subarray(0, count * step.count);
      step.score(rowNumbers, stepScores);
      for (let i = 0; i < step.count; i++) sum += highest(stepScores, i, step.count);
      place += step.count;
      if (isBounded && boundOf(sum, place, longest) < cutoff) return null;
    }
    return sum;
  };

  function boundOf(sum: number, place: number, longest: number): number {
    let bound = sum;
    for (let i = place; i < vectorCount; i++) {
      bound += longestOf === null ? 1 : bounds[i]! * longest;
    }
    return bound;
  }
}

/** q| of each vector, multiplied by the slack of the bound. */
function boundsOf(vectors: Float32Array, dimension: number): Float64Array {
  return Float64Array.from({ length: vectors.length / dimension }, (_, i) => {
    return Math.sqrt(sumOfSquares(vectors, i * dimension, dimension)) * BOUND_SLACK;
  });
}

/** Returns a function for max |x| of vectors, whose euclidean scores with the zero vector are −x·x. */
function createMaxNorm({ dimension, values }: MultiVectors): (numbers: Uint32Array) => number {
  const vectors = new Float32Array(dimension);
  const score = createRowScorer({ metric: 'euclidean', dimension, values, vectors });
  let scores = new Float64Array(0);
  return (numbers) => {
    if (scores.length < numbers.length) scores = new Float64Array(numbers.length);
    const found = scores.subarray(0, numbers.length);
    score(numbers, found);
    return Math.sqrt(found.reduce((longest, value) => Math.max(longest, -value), 0));
  };
}

/** The highest of every `stride`-th score from `first` on. */
function highest(scores: Float64Array, first: number, stride: number): number {
  let score = scores[first]!;
  for (let i = first + stride; i < scores.length; i += stride) {
    if (scores[i]! > score) score = scores[i]!;
  }
  return score;
}
