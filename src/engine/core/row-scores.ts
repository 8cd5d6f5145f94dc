// Canonical scores of chosen rows with several vectors: by the native kernels where the addon is built,
// otherwise in TypeScript, with the same bits. x·x of a row is computed once for all vectors.

import { type Bitmap, nextSetBit } from '../../common/bitmap.js';
import type { Metric } from '../../common/types.js';
import { addonPath, loadAddon } from '../../platform/native-addon.js';
import { canonicalScore, createCanonicalQuery, sumOfProducts, sumOfSquares } from './canonical.js';
import { METRIC_NUMBERS } from './kernel-batch.js';

/** Rows and the vectors to score them with. */
export interface ScoredRows {
  readonly metric: Metric;
  readonly dimension: number;
  /** Row-major, at least [rowCount, dimension] float32. */
  readonly values: Float32Array;
  /** Row-major [vectorCount, dimension] float32. */
  readonly vectors: Float32Array;
}

/**
 * Fills `scores`, row-major [rows.length, vectorCount], with the canonical scores of the given row numbers.
 * `squares` holds x·x of these rows if they are known; dot products do not read it.
 */
export type RowScorer = (rows: Uint32Array, scores: Float64Array, squares?: Float64Array) => void;

/** The part of the addon that scores rows; kernels/kernels.h documents it. */
export interface ScoringAddon {
  scoreRows(
    rows: ScoredRows & { readonly metricNumber: number },
    numbers: Uint32Array,
    squares: Float64Array | null,
    scores: Float64Array,
  ): void;
}

/** Rows scored at once: enough that the cost of calling the addon, about a microsecond, does not matter. */
const CHUNK_ROWS = 512;

/** The scoring functions of the addon; null where it is not built. */
export const scoringAddon = load();

/** Tests pass `addon` to compare the two implementations. */
export function createRowScorer(
  rows: ScoredRows,
  addon: ScoringAddon | null = scoringAddon,
): RowScorer {
  if (addon === null) return createPortableScorer(rows);
  const input = { ...rows, metricNumber: METRIC_NUMBERS[rows.metric] };
  return (numbers, scores, squares) => addon.scoreRows(input, numbers, squares ?? null, scores);
}

/**
 * Calls `take` with the scores of the rows of from..to that the bitmap (null for all) selects, in order and in
 * chunks. The arrays are valid only during the call.
 */
export function scoreSelected(
  rows: ScoredRows,
  {
    bitmap,
    from,
    to,
  }: { readonly bitmap: Bitmap | null; readonly from: number; readonly to: number },
  take: (rows: Uint32Array, scores: Float64Array) => void,
): void {
  const score = createRowScorer(rows);
  const vectorCount = rows.vectors.length / rows.dimension;
  const numbers = new Uint32Array(Math.min(CHUNK_ROWS, to - from));
  const scores = new Float64Array(numbers.length * vectorCount);
  const next = (row: number) => (bitmap === null ? row : nextSetBit(bitmap, row));
  let count = 0;
  const takeChunk = () => {
    const chunk = numbers.subarray(0, count);
    const chunkScores = scores.subarray(0, count * vectorCount);
    score(chunk, chunkScores);
    take(chunk, chunkScores);
    count = 0;
  };
  for (let row = next(from); row !== -1 && row < to; row = next(row + 1)) {
    numbers[count++] = row;
    if (count === numbers.length) takeChunk();
  }
  if (count > 0) takeChunk();
}

/** Rows per tile, which all vectors score one after another while it is in the cache. */
const TILE_ROWS = 64;

function createPortableScorer({ metric, dimension, values, vectors }: ScoredRows): RowScorer {
  const queries = Array.from({ length: vectors.length / dimension }, (_, i) =>
    createCanonicalQuery(metric, vectors.subarray(i * dimension, (i + 1) * dimension)),
  );
  const tileSquares = new Float64Array(TILE_ROWS);
  const scoreTile = (rows: Uint32Array, scores: Float64Array, known: Float64Array | undefined) => {
    if (metric !== 'dot') {
      for (let i = 0; i < rows.length; i++) {
        tileSquares[i] = known?.[i] ?? sumOfSquares(values, rows[i]! * dimension, dimension);
      }
    }
    for (const [place, query] of queries.entries()) {
      for (let i = 0; i < rows.length; i++) {
        const product = sumOfProducts(query.values, values, rows[i]! * dimension);
        const score = canonicalScore(metric, product, query.square, tileSquares[i]!);
        scores[i * queries.length + place] = score;
      }
    }
  };
  return (rows, scores, squares) => {
    for (let from = 0; from < rows.length; from += TILE_ROWS) {
      const to = Math.min(from + TILE_ROWS, rows.length);
      const tileScores = scores.subarray(from * queries.length, to * queries.length);
      scoreTile(rows.subarray(from, to), tileScores, squares?.subarray(from, to));
    }
  };
}

function load(): ScoringAddon | null {
  try {
    return loadAddon<ScoringAddon>(addonPath('sagitta.node'), 'the addon is not built');
  } catch {
    // The choice of the engine reports the error.
    return null;
  }
}
