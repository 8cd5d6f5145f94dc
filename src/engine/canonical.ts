// The canonical score: the one float64 value per query and row that decides every answer. Any
// instruction set, CUDA and JavaScript get the same bits from the recipe below, with or without
// fused multiply-add. Order and selection are left to order.ts.
//
// Sum of products of a and b, both float32 [dimension]:
//   1. Eight float64 lanes start at +0. For i = 0, 1, 2, …: lane[i mod 8] += a[i] * b[i], in order
//      of i within each lane. A product of two float32 is exact in float64 (48 bits of 53, and the
//      exponents fit), so only the addition rounds: to nearest, ties to even.
//   2. Fold the upper half onto the lower one, three times (512 → 256 → 128 → 64 bits):
//      t[j] = lane[j] + lane[j + 4], j = 0…3;  u[j] = t[j] + t[j + 2], j = 0…1;  sum = u[0] + u[1].
// A lane that starts at +0 never becomes −0, so no sum is −0.
//
// With p = q·x, qq = q·q, xx = x·x, each such a sum, and one rounding for each operation:
//   dot        p
//   cosine     p / (√qq * √xx), then clamped to [−1, 1]; 0 where qq or xx is 0
//   euclidean  0 − max(0, (qq − 2p) + xx), which is exactly 0 for q = x
// No step leaves float64's range: p is at most 16 384 * 2^256, and at least 2^-298 unless it is 0.

import type { Metric } from '../types.js';

/** A query as the canonical sums want it. */
export interface CanonicalQuery {
  readonly metric: Metric;
  /** [dimension], the float32 values widened: V8 then converts only the row's values in the loop. */
  readonly values: Float64Array;
  /** Canonical q·q. */
  readonly square: number;
}

export function createCanonicalQuery(metric: Metric, vector: Float32Array): CanonicalQuery {
  return {
    metric,
    values: Float64Array.from(vector),
    square: sumOfSquares(vector, 0, vector.length),
  };
}

/** Canonical q·x; the row is `values[offset..offset + query.length)`. */
export function sumOfProducts(query: Float64Array, values: Float32Array, offset: number): number {
  const dimension = query.length;
  const unrolledEnd = dimension - (dimension & 7);
  let lane0 = 0;
  let lane1 = 0;
  let lane2 = 0;
  let lane3 = 0;
  let lane4 = 0;
  let lane5 = 0;
  let lane6 = 0;
  let lane7 = 0;
  for (let i = 0; i < unrolledEnd; i += 8) {
    const at = offset + i;
    lane0 += query[i]! * values[at]!;
    lane1 += query[i + 1]! * values[at + 1]!;
    lane2 += query[i + 2]! * values[at + 2]!;
    lane3 += query[i + 3]! * values[at + 3]!;
    lane4 += query[i + 4]! * values[at + 4]!;
    lane5 += query[i + 5]! * values[at + 5]!;
    lane6 += query[i + 6]! * values[at + 6]!;
    lane7 += query[i + 7]! * values[at + 7]!;
  }
  // At most seven products are left, one for each of the lanes 0 to 6.
  const left = dimension - unrolledEnd;
  const at = offset + unrolledEnd;
  if (left > 0) lane0 += query[unrolledEnd]! * values[at]!;
  if (left > 1) lane1 += query[unrolledEnd + 1]! * values[at + 1]!;
  if (left > 2) lane2 += query[unrolledEnd + 2]! * values[at + 2]!;
  if (left > 3) lane3 += query[unrolledEnd + 3]! * values[at + 3]!;
  if (left > 4) lane4 += query[unrolledEnd + 4]! * values[at + 4]!;
  if (left > 5) lane5 += query[unrolledEnd + 5]! * values[at + 5]!;
  if (left > 6) lane6 += query[unrolledEnd + 6]! * values[at + 6]!;
  return lane0 + lane4 + (lane2 + lane6) + (lane1 + lane5 + (lane3 + lane7));
}

/** Canonical x·x of the row `values[offset..offset + dimension)`. */
export function sumOfSquares(values: Float32Array, offset: number, dimension: number): number {
  const unrolledEnd = offset + dimension - (dimension & 7);
  const end = offset + dimension;
  let lane0 = 0;
  let lane1 = 0;
  let lane2 = 0;
  let lane3 = 0;
  let lane4 = 0;
  let lane5 = 0;
  let lane6 = 0;
  let lane7 = 0;
  for (let i = offset; i < unrolledEnd; i += 8) {
    lane0 += values[i]! * values[i]!;
    lane1 += values[i + 1]! * values[i + 1]!;
    lane2 += values[i + 2]! * values[i + 2]!;
    lane3 += values[i + 3]! * values[i + 3]!;
    lane4 += values[i + 4]! * values[i + 4]!;
    lane5 += values[i + 5]! * values[i + 5]!;
    lane6 += values[i + 6]! * values[i + 6]!;
    lane7 += values[i + 7]! * values[i + 7]!;
  }
  const left = end - unrolledEnd;
  if (left > 0) lane0 += values[unrolledEnd]! * values[unrolledEnd]!;
  if (left > 1) lane1 += values[unrolledEnd + 1]! * values[unrolledEnd + 1]!;
  if (left > 2) lane2 += values[unrolledEnd + 2]! * values[unrolledEnd + 2]!;
  if (left > 3) lane3 += values[unrolledEnd + 3]! * values[unrolledEnd + 3]!;
  if (left > 4) lane4 += values[unrolledEnd + 4]! * values[unrolledEnd + 4]!;
  if (left > 5) lane5 += values[unrolledEnd + 5]! * values[unrolledEnd + 5]!;
  if (left > 6) lane6 += values[unrolledEnd + 6]! * values[unrolledEnd + 6]!;
  return lane0 + lane4 + (lane2 + lane6) + (lane1 + lane5 + (lane3 + lane7));
}

/** The score from the three sums; never −0. */
export function canonicalScore(
  metric: Metric,
  product: number,
  querySquare: number,
  rowSquare: number,
): number {
  switch (metric) {
    case 'dot':
      return product;
    case 'cosine': {
      if (querySquare === 0 || rowSquare === 0) return 0;
      const cosine = product / (Math.sqrt(querySquare) * Math.sqrt(rowSquare));
      return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    }
    case 'euclidean': {
      const squaredDistance = querySquare - 2 * product + rowSquare;
      return squaredDistance > 0 ? 0 - squaredDistance : 0;
    }
  }
}
