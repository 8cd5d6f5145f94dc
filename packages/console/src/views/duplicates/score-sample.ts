// The nearest neighbours of a sample of vectors: the distribution of their scores, the threshold that it suggests, and
// the number of pairs that it predicts for the whole collection. The scores are exact; only the rows are a sample.

import type { JoinRow, Metric } from '@sagitta/client';
import { type ScoreDistances, scoreScale } from './score-scale.js';

/** More rows would not change the histogram visibly. */
const ROWS_MAX = 1_000;
const ROWS_MIN = 100;
/** Bounds the products of two elements to some seconds of a core. */
const PRODUCTS_MAX = 5e10;
/** Neighbours per row. With more pairs per row, a threshold no longer finds duplicates. */
export const NEIGHBORS_PER_ROW = 20;

/** The number of rows to sample from `vectorCount` vectors. */
export function sampleRowsOf(vectorCount: number, dimension: number): number {
  const affordable = Math.floor(PRODUCTS_MAX / Math.max(1, vectorCount * dimension));
  return Math.min(ROWS_MAX, Math.max(ROWS_MIN, affordable));
}

export interface ScoreSample {
  readonly rowCount: number;
  /** The number of vectors from which the rows were chosen. */
  readonly vectorCount: number;
  /** The score of the nearest neighbour of each row that has one, descending. */
  readonly nearest: Float64Array;
  /** The scores of all neighbours of all rows, descending. */
  readonly scores: Float64Array;
  /** The highest score at which a row may have more neighbours than were asked for; -Infinity if none has. */
  readonly cutOffScore: number;
}

export function sampleOf(rows: readonly JoinRow[], vectorCount: number): ScoreSample {
  const scoresOf = rows.map(({ matches }) => matches.map(({ score }) => score));
  const cutOffs = scoresOf.filter((scores) => scores.length >= NEIGHBORS_PER_ROW);
  return {
    rowCount: rows.length,
    vectorCount,
    nearest: descending(scoresOf.flatMap((scores) => scores.slice(0, 1))),
    scores: descending(scoresOf.flat()),
    cutOffScore: cutOffs.reduce((max, scores) => Math.max(max, scores.at(-1)!), -Infinity),
  };
}

function descending(scores: readonly number[]): Float64Array {
  return Float64Array.from(scores).sort().reverse();
}

export interface PairPrediction {
  readonly pairCount: number;
  /** Whether a row may have more neighbours with the score than were asked for. */
  readonly isAtLeast: boolean;
}

/** The number of pairs in the whole collection that reach the threshold. */
export function predictPairs(sample: ScoreSample, threshold: number): PairPrediction {
  const { scores, rowCount, vectorCount, cutOffScore } = sample;
  const found = countAtLeast(scores, threshold);
  // Each pair is found from both of its rows.
  const pairCount = rowCount === 0 ? 0 : Math.round((found / 2) * (vectorCount / rowCount));
  return { pairCount, isAtLeast: cutOffScore >= threshold };
}

/** The number of scores, which are descending, that reach the threshold. */
export function countAtLeast(scores: Float64Array, threshold: number): number {
  let [low, high] = [0, scores.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (scores[middle]! >= threshold) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface ScoreHistogram {
  readonly from: number;
  readonly to: number;
  /** The number of scores in each of the equal parts from `from` to `to`. */
  readonly counts: readonly number[];
}

/** The share of the lowest scores that get no room, so that outliers do not squeeze the rest. */
const TAIL_SHARE = 0.01;

/** Undefined without scores. */
export function histogramOf(
  { nearest }: ScoreSample,
  barCount: number,
): ScoreHistogram | undefined {
  if (nearest.length === 0) return undefined;
  const lowest = nearest[nearest.length - 1 - Math.floor(nearest.length * TAIL_SHARE)]!;
  const highest = nearest[0]!;
  // Equal scores still need a width.
  const width = Math.max(highest - lowest, 1e-3 * Math.max(1, Math.abs(highest)));
  const from = highest - width;
  const counts = new Array<number>(barCount).fill(0);
  for (const score of nearest) {
    const at = Math.floor(((score - from) / width) * barCount);
    counts[Math.min(barCount - 1, Math.max(0, at))]!++;
  }
  return { from, to: highest, counts };
}

export interface SuggestedThreshold {
  readonly threshold: number;
  /** `gap`: no sampled score is near it. `top`: the highest scores, because no gap separates duplicates. */
  readonly reason: 'gap' | 'top';
}

/** The share of the rows whose score a threshold without a gap admits. */
export const TOP_SHARE = 0.02;
/** Distances on both sides of a gap differ at least by this factor. */
const GAP_FACTOR_MIN = 2;
/** Smaller distances, as a share of a large one, are rounding errors. */
const FLOOR_SHARE = 1e-4;
/** Distances up to this share of a large one may be duplicates even if most vectors have one. */
const NEAR_SHARE = 0.01;

/** Undefined without scores. */
export function suggestThreshold(
  metric: Metric,
  { nearest }: ScoreSample,
): SuggestedThreshold | undefined {
  if (nearest.length === 0) return undefined;
  const { distances } = scoreScale(metric);
  const gap = distances && thresholdInGap(nearest, distances);
  if (gap !== undefined) return { threshold: gap, reason: 'gap' };
  const top = nearest[Math.floor(nearest.length * TOP_SHARE)]!;
  const threshold =
    distances === undefined ? Number(top.toPrecision(6)) : lowerScore(top, nearest, distances);
  return { threshold, reason: 'top' };
}

/** The threshold in the widest gap between the distances of duplicates and those of other neighbours, if there is one. */
function thresholdInGap(
  nearest: Float64Array,
  { distanceAt, scoreAt }: ScoreDistances,
): number | undefined {
  const sorted = nearest.map(distanceAt);
  const large = largeDistance(sorted);
  const at = (index: number) => Math.max(sorted[index]!, large * FLOOR_SHARE);
  let [best, factor] = [-1, GAP_FACTOR_MIN];
  for (let index = 0; index + 1 < sorted.length; index++) {
    // The far half has no duplicates, unless most vectors have one.
    if (index > sorted.length / 2 && at(index) > large * NEAR_SHARE) break;
    const found = at(index + 1) / at(index);
    if (found >= factor) [best, factor] = [index, found];
  }
  if (best < 0) return undefined;
  // Nearer to the other neighbours, since some duplicates are less similar than those of the sample.
  return rounded(scoreAt(at(best) ** (1 / 3) * at(best + 1) ** (2 / 3)), 2, Math.round);
}

/** A distance that most vectors have at most to their nearest neighbour. */
function largeDistance(ascending: Float64Array): number {
  return ascending[Math.floor(ascending.length * 0.9)]! || ascending.at(-1)!;
}

/** The score, or that of the smallest distance that is not a rounding error, rounded down. */
function lowerScore(
  score: number,
  nearest: Float64Array,
  { distanceAt, scoreAt }: ScoreDistances,
): number {
  const floor = FLOOR_SHARE * largeDistance(nearest.map(distanceAt));
  return rounded(Math.min(score, scoreAt(floor)), 3, Math.floor);
}

/** Keeps so many digits of the difference to 1, the score of equal vectors. */
function rounded(score: number, digits: number, round: (value: number) => number): number {
  const difference = Math.abs(1 - score);
  const decimals = Math.ceil(-Math.log10(Math.max(difference, 1e-9))) + digits - 1;
  const factor = 10 ** Math.max(2, decimals);
  return round(score * factor) / factor;
}
