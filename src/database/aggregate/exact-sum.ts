// Sums numbers without rounding, so that neither the order of the values nor the division of rows into segments and
// tasks changes a sum or a mean. Only the final result is rounded, once.

import { numberOf } from '../../common/exact-json.js';
import type { JsonNumber } from '../../common/types.js';

/** Values added before the bins are emptied. The sum of 2^20 words of 32 bits stays below 2^53 and thus exact. */
const PENDING_MAX = 2 ** 20;
/** 1 is 2^1074 units of a total. */
const UNITS_OF_ONE = 1_074n;
/** Bins by the sign and the biased exponent of a value. */
const BIN_COUNT = 4_096;
/** The biased exponents of one sign. */
const EXPONENT_COUNT = 2_048;

const scratch = new Float64Array(1);
const scratchWords = new Uint32Array(scratch.buffer);

/** Sums finite values. The mantissas of values with equal exponents are added as integers. */
export class ExactSum {
  readonly #low = new Float64Array(BIN_COUNT);
  readonly #high = new Float64Array(BIN_COUNT);
  #pendingCount = 0;
  #total = 0n;

  add(value: JsonNumber): void {
    if (typeof value === 'bigint') {
      this.#total += value << UNITS_OF_ONE;
      return;
    }
    scratch[0] = value;
    const high = scratchWords[1]!;
    const bin = high >>> 20;
    const isSubnormal = (bin & (EXPONENT_COUNT - 1)) === 0;
    this.#low[bin]! += scratchWords[0]!;
    this.#high[bin]! += (high & 0xfffff) + (isSubnormal ? 0 : 0x100000);
    this.#pendingCount++;
    if (this.#pendingCount === PENDING_MAX) this.#empty();
  }

  /** The sum in units of 2^-1074, the least float64 above zero. */
  get total(): bigint {
    this.#empty();
    return this.#total;
  }

  #empty(): void {
    for (let bin = 0; bin < BIN_COUNT; bin++) {
      const low = this.#low[bin]!;
      const high = this.#high[bin]!;
      if (low === 0 && high === 0) continue;
      const exponent = Math.max(1, bin & (EXPONENT_COUNT - 1)) - 1;
      const magnitude = ((BigInt(high) << 32n) + BigInt(low)) << BigInt(exponent);
      this.#total += bin < EXPONENT_COUNT ? magnitude : -magnitude;
    }
    this.#low.fill(0);
    this.#high.fill(0);
    this.#pendingCount = 0;
  }
}

/** Converts a total in units of 2^-1074: exact for an integer of int64 or uint64, otherwise the nearest float64. */
export function exactTotal(total: bigint): JsonNumber {
  const integer = total >> UNITS_OF_ONE;
  const exact = integer << UNITS_OF_ONE === total ? numberOf(integer) : null;
  return typeof exact === 'bigint' ? exact : quotientOf(total, 1);
}

/**
 * `total / count` in units of 2^-1074, as the nearest float64, ties to even. A quotient beyond the greatest float64
 * becomes the greatest float64, since JSON has no infinity.
 */
export function quotientOf(total: bigint, count: number): number {
  const divisor = BigInt(count);
  const magnitude = total < 0n ? -total : total;
  // Enough bits after the point for at least 55 significant bits.
  const extraBits = Math.max(0, 56 + bitLength(divisor) - bitLength(magnitude));
  const dividend = magnitude << BigInt(extraBits);
  const quotient = dividend / divisor;
  const isExact = quotient * divisor === dividend;
  // A float64 has 53 bits, and no bits below the unit.
  const dropped = Math.max(bitLength(quotient) - 53, extraBits);
  const rounded = Number(dropBits(quotient, dropped, isExact));
  const result = rounded * 2 ** (dropped - extraBits - 1_074);
  return (total < 0n ? -1 : 1) * Math.min(result, Number.MAX_VALUE);
}

/** `value / 2^count` rounded to the nearest integer, ties to even; `value` was truncated unless `isExact`. */
function dropBits(value: bigint, count: number, isExact: boolean): bigint {
  if (count === 0) return value;
  const shift = BigInt(count);
  const kept = value >> shift;
  const rest = value - (kept << shift);
  const half = 1n << (shift - 1n);
  const isAboveHalf = rest > half || (rest === half && (!isExact || (kept & 1n) === 1n));
  return isAboveHalf ? kept + 1n : kept;
}

function bitLength(value: bigint): number {
  const digits = value.toString(16);
  return value === 0n ? 0 : 4 * digits.length - (Math.clz32(Number.parseInt(digits[0]!, 16)) - 28);
}
