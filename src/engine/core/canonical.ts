// The canonical score: the float64 value per query and row that decides every answer. The recipe below
// gives the same bits on every instruction set, in CUDA and in JavaScript, with or without fused
// multiply-add. order.ts defines the order and the selection.
//
// Sum of products of a and b, both float32 [dimension]:
//   1. Eight float64 lanes start at +0. For i = 0, 1, 2, …: lane[i mod 8] += a[i] * b[i], in order
//      of i within each lane. A product of two float32 values is exact in float64 (48 bits of 53, and the
//      exponents fit), so only the addition rounds: to nearest, ties to even.
//   2. Add the upper half to the lower half, three times (512 → 256 → 128 → 64 bits):
//      t[j] = lane[j] + lane[j + 4], j = 0…3;  u[j] = t[j] + t[j + 2], j = 0…1;  sum = u[0] + u[1].
// A lane that starts at +0 never becomes −0, so no sum is −0.
//
// With p = q·x, qq = q·q and xx = x·x summed as above, and one rounding per operation:
//   dot        p
//   cosine     p / (√qq * √xx), then clamped to [−1, 1]; 0 where qq or xx is 0
//   euclidean  0 − max(0, (qq − 2p) + xx), which is exactly 0 for q = x; the same for hamming
//   jaccard    p / ((qq − p) + xx); 0 where qq and xx are 0
// No step overflows or underflows: |p| is at most 16 384 * 2^256, and at least 2^-298 unless it is 0.

import type { Metric } from '../../common/types.js';

/** A query prepared for canonical sums. */
export interface CanonicalQuery {
  readonly metric: Metric;
  /** [dimension], float32 values widened to float64, so that the loop converts row values only. */
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

/**
 * The values of the query last used. V8 compiles the address and length of this constant array into
 * the loop below, which makes it a third faster than with an array argument. 16 384 is the largest
 * dimension; `set` throws for a larger query.
 */
const querySlot = new Float64Array(16_384);
let slotOwner: Float64Array | null = null;

/** Canonical q·x; the row is `values[offset..offset + dimension)`. */
export function sumOfProducts(query: Float64Array, values: Float32Array, offset: number): number {
  if (query !== slotOwner) {
    querySlot.set(query);
    slotOwner = query;
  }
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
    lane0 += querySlot[i]! * values[at]!;
    lane1 += querySlot[i + 1]! * values[at + 1]!;
    lane2 += querySlot[i + 2]! * values[at + 2]!;
    lane3 += querySlot[i + 3]! * values[at + 3]!;
    lane4 += querySlot[i + 4]! * values[at + 4]!;
    lane5 += querySlot[i + 5]! * values[at + 5]!;
    lane6 += querySlot[i + 6]! * values[at + 6]!;
    lane7 += querySlot[i + 7]! * values[at + 7]!;
  }
  // At most seven products are left, one each for lanes 0 to 6.
  const left = dimension - unrolledEnd;
  const at = offset + unrolledEnd;
  if (left > 0) lane0 += querySlot[unrolledEnd]! * values[at]!;
  if (left > 1) lane1 += querySlot[unrolledEnd + 1]! * values[at + 1]!;
  if (left > 2) lane2 += querySlot[unrolledEnd + 2]! * values[at + 2]!;
  if (left > 3) lane3 += querySlot[unrolledEnd + 3]! * values[at + 3]!;
  if (left > 4) lane4 += querySlot[unrolledEnd + 4]! * values[at + 4]!;
  if (left > 5) lane5 += querySlot[unrolledEnd + 5]! * values[at + 5]!;
  if (left > 6) lane6 += querySlot[unrolledEnd + 6]! * values[at + 6]!;
  return lane0 + lane4 + (lane2 + lane6) + (lane1 + lane5 + (lane3 + lane7));
}

/** Canonical x·x of the row `values[offset..offset + dimension)`. */
export function sumOfSquares(values: Float32Array, offset: number, dimension: number): number {
  const unrolledEnd = offset + dimension - (dimension & 7);
  let lane0 = 0;
  let lane1 = 0;
  let lane2 = 0;
  let lane3 = 0;
  let lane4 = 0;
  let lane5 = 0;
  let lane6 = 0;
  let lane7 = 0;
  for (let i = offset; i < unrolledEnd; i += 8) {
    const value0 = values[i]!;
    const value1 = values[i + 1]!;
    const value2 = values[i + 2]!;
    const value3 = values[i + 3]!;
    const value4 = values[i + 4]!;
    const value5 = values[i + 5]!;
    const value6 = values[i + 6]!;
    const value7 = values[i + 7]!;
    lane0 += value0 * value0;
    lane1 += value1 * value1;
    lane2 += value2 * value2;
    lane3 += value3 * value3;
    lane4 += value4 * value4;
    lane5 += value5 * value5;
    lane6 += value6 * value6;
    lane7 += value7 * value7;
  }
  const left = offset + dimension - unrolledEnd;
  if (left > 0) lane0 += square(values[unrolledEnd]!);
  if (left > 1) lane1 += square(values[unrolledEnd + 1]!);
  if (left > 2) lane2 += square(values[unrolledEnd + 2]!);
  if (left > 3) lane3 += square(values[unrolledEnd + 3]!);
  if (left > 4) lane4 += square(values[unrolledEnd + 4]!);
  if (left > 5) lane5 += square(values[unrolledEnd + 5]!);
  if (left > 6) lane6 += square(values[unrolledEnd + 6]!);
  return lane0 + lane4 + (lane2 + lane6) + (lane1 + lane5 + (lane3 + lane7));
}

function square(value: number): number {
  return value * value;
}

/** Combines the three sums into the score, which is never −0. */
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
    case 'euclidean':
    case 'hamming': {
      const squaredDistance = querySquare - 2 * product + rowSquare;
      return squaredDistance > 0 ? 0 - squaredDistance : 0;
    }
    case 'jaccard': {
      const either = querySquare - product + rowSquare;
      return either > 0 ? product / either : 0;
    }
  }
}
