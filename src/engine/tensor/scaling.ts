// Powers of two that scale vectors into the range in which float32 sums of products do not overflow
// and lose only negligible amounts to underflow. exact-top-k-selector.ts contains the proof.

/** Rows whose x·x is between these need no scaling and can be copied unchanged. */
export const PLAIN_SQUARE_MIN = 2 ** -40;
export const PLAIN_SQUARE_MAX = 2 ** 40;

/** Returns the scale of a row with this canonical x·x: 1, or the power of two that makes its length 1 to 2. */
export function rowScale(square: number): number {
  if (square >= PLAIN_SQUARE_MIN && square <= PLAIN_SQUARE_MAX) return 1;
  return unitScale(square);
}

/** Returns the power of two that makes the length of a vector with this x·x 1 to 2; 1 for a zero vector. */
export function unitScale(square: number): number {
  return square === 0 ? 1 : powerOfTwo(-Math.floor(Math.log2(square) / 2));
}

const bits = new BigInt64Array(1);
const double = new Float64Array(bits.buffer);

/** Returns exactly 2^exponent, for −1022 to 1023. The `**` operator does not guarantee exactness. */
function powerOfTwo(exponent: number): number {
  bits[0] = BigInt(exponent + 1023) << 52n;
  return double[0]!;
}
