// The expected results: brute force in float64 over all rows, independent of the engines. The order of
// summation is the documented one (eight lanes, folded in halves), so scores agree to the bit.

import { hasBit } from '../../src/common/bitmap.js';
import type { RankKey } from '../../src/common/rank-key.js';
import type { Metric } from '../../src/common/types.js';
import { publicScore, type SearchHits, type SearchQuery } from '../../src/engine/core/engine.js';
import { type DataSet, idOf } from './data.js';

export interface Match {
  /** Row number over all blocks. */
  readonly row: number;
  readonly score: number;
}

/** Thrown when an engine's result differs from brute force; it is then not timed. */
export class WrongResult extends Error {}

/** The exact results of the first `queryCount` queries of each case; scores are cached per vector and metric. */
export class Truth {
  readonly queryCount: number;
  readonly #data: DataSet;
  readonly #rowSquares: Float64Array;
  readonly #scores = new Map<Float32Array, Map<Metric, Float64Array>>();

  constructor(data: DataSet, queryCount: number) {
    this.#data = data;
    this.queryCount = queryCount;
    this.#rowSquares = this.#forEachRow((values, offset) =>
      laneSum(values, offset, values, offset, data.dimension),
    );
  }

  /** Returns the matches of a query, with its filter, rank key and least score applied. */
  matchesOf(query: SearchQuery): Match[] {
    const scores = this.#scoresOf(query.vector, query.metric);
    const isEligible = (row: number) =>
      passesFilter(query, this.#data, row) &&
      isAfter(query.after, row, scores[row]!) &&
      reaches(query, scores[row]!);
    return best(scores, query.k, isEligible);
  }

  /** Returns the match at a rank (from 0) of the unfiltered order. */
  matchAt(vector: Float32Array, metric: Metric, rank: number): Match {
    return best(this.#scoresOf(vector, metric), rank + 1, () => true)[rank]!;
  }

  #scoresOf(vector: Float32Array, metric: Metric): Float64Array {
    const byMetric = this.#scores.get(vector) ?? new Map<Metric, Float64Array>();
    this.#scores.set(vector, byMetric);
    let scores = byMetric.get(metric);
    if (scores === undefined) {
      const { dimension } = this.#data;
      const querySquare = laneSum(vector, 0, vector, 0, dimension);
      scores = this.#forEachRow((values, offset, row) => {
        const product = laneSum(vector, 0, values, offset, dimension);
        return scoreOf(metric, product, querySquare, this.#rowSquares[row]!);
      });
      byMetric.set(metric, scores);
    }
    return scores;
  }

  #forEachRow(
    compute: (values: Float32Array, offset: number, row: number) => number,
  ): Float64Array {
    const { blocks, starts, dimension, rowCount } = this.#data;
    const results = new Float64Array(rowCount);
    for (const [index, block] of blocks.entries()) {
      const start = starts[index]!;
      for (let row = 0; row < block.rowCount; row++) {
        results[start + row] = compute(block.values, row * dimension, start + row);
      }
    }
    return results;
  }
}

/** Throws WrongResult unless ids, order and score bits are those of brute force. */
export function checkAnswer(hits: SearchHits, expected: readonly Match[], data: DataSet): void {
  const found = matchesOf(hits, data);
  const place = expected.findIndex(({ row, score }, index) => {
    return found[index]?.row !== row || !Object.is(found[index].score, score);
  });
  if (place !== -1 || found.length !== expected.length) {
    const at = place === -1 ? expected.length : place;
    throw new WrongResult(
      `at rank ${at} of ${expected.length}: expected ${describe(expected[at])}, ` +
        `found ${describe(found[at])}`,
    );
  }
}

export function matchesOf({ viewIndexes, rows, scores }: SearchHits, { starts }: DataSet): Match[] {
  return Array.from(rows, (row, index) => ({
    row: starts[viewIndexes[index]!]! + row,
    score: scores[index]!,
  }));
}

function describe(match: Match | undefined): string {
  return match === undefined ? 'no match' : `${idOf(match.row)} with score ${match.score}`;
}

/** Returns the best k by score, then by id; ids are in row order. */
function best(scores: Float64Array, k: number, isEligible: (row: number) => boolean): Match[] {
  const rows: number[] = [];
  for (let row = 0; row < scores.length; row++) if (isEligible(row)) rows.push(row);
  const ordered = Float64Array.from(rows, (row) => scores[row]!).sort();
  const threshold = ordered[Math.max(0, ordered.length - k)]!;
  return rows
    .filter((row) => scores[row]! >= threshold)
    .map((row) => ({ row, score: scores[row]! }))
    .sort((left, right) => right.score - left.score || left.row - right.row)
    .slice(0, k);
}

function passesFilter({ views }: SearchQuery, { starts }: DataSet, row: number): boolean {
  let index = 0;
  while (index + 1 < starts.length && starts[index + 1]! <= row) index++;
  const { rows } = views[index]!;
  return rows === null || hasBit(rows, row - starts[index]!);
}

function isAfter(after: RankKey | null, row: number, score: number): boolean {
  if (after === null) return true;
  if (score !== after.score) return score < after.score;
  return idOf(row) > Buffer.from(after.id).toString();
}

function reaches({ metric, scoreMin }: SearchQuery, score: number): boolean {
  return scoreMin === null || Math.fround(publicScore(metric, score)) >= scoreMin;
}

function scoreOf(metric: Metric, product: number, querySquare: number, rowSquare: number): number {
  switch (metric) {
    case 'dot':
      return product;
    case 'cosine':
      return Math.max(-1, Math.min(1, product / (Math.sqrt(querySquare) * Math.sqrt(rowSquare))));
    case 'euclidean':
    case 'hamming':
      return 0 - Math.max(0, querySquare - 2 * product + rowSquare);
    case 'jaccard':
      return product / (querySquare - product + rowSquare) || 0;
  }
}

const lanes = new Float64Array(8);

function laneSum(
  left: Float32Array,
  leftOffset: number,
  right: Float32Array,
  rightOffset: number,
  count: number,
): number {
  lanes.fill(0);
  for (let i = 0; i < count; i++) lanes[i & 7]! += left[leftOffset + i]! * right[rightOffset + i]!;
  for (let half = 4; half > 0; half >>= 1) {
    for (let lane = 0; lane < half; lane++) lanes[lane]! += lanes[lane + half]!;
  }
  return lanes[0]!;
}
