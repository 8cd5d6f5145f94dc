// Columns of integers and floats of every width: as numbers, and as text that is exact where a number
// would round.

import type { Column } from './columns.js';
import type { IntType } from './schema.js';
import type { TextBuilder } from './text-builder.js';

export type NarrowIntegers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array;

/** Up to 32 bits. */
export function narrowIntegers(column: Column, { bitWidth, isSigned }: IntType): NarrowIntegers {
  const { length } = column;
  switch (bitWidth) {
    case 8:
      return isSigned ? column.buffer(0, Int8Array, length) : column.buffer(0, Uint8Array, length);
    case 16:
      return isSigned
        ? column.buffer(0, Int16Array, length)
        : column.buffer(0, Uint16Array, length);
    default:
      return isSigned
        ? column.buffer(0, Int32Array, length)
        : column.buffer(0, Uint32Array, length);
  }
}

/** 64 bits. */
export function wideIntegers(column: Column, isSigned: boolean): (row: number) => number | bigint {
  const { length } = column;
  const halves = column.buffer(0, Int32Array, length * 2);
  const big = isSigned
    ? column.buffer(0, BigInt64Array, length)
    : column.buffer(0, BigUint64Array, length);
  return (row) => {
    const low = halves[row * 2]!;
    const high = halves[row * 2 + 1]!;
    // Between -2^53 and 2^53: what most integers are, without the cost of a bigint.
    if (high >= -0x200000 && high < 0x200000 && (isSigned || high >= 0)) {
      return high * 2 ** 32 + (low >>> 0);
    }
    return big[row]!;
  };
}

/** Writes the integers of a column in decimal, exactly. */
export function integerWriter(
  column: Column,
  type: IntType,
  out: TextBuilder,
): (row: number) => void {
  if (type.bitWidth < 64) {
    const values = narrowIntegers(column, type);
    return (row) => out.integer(values[row]!);
  }
  const read = wideIntegers(column, type.isSigned);
  return (row) => {
    const value = read(row);
    if (typeof value === 'number') out.integer(value);
    else out.ascii(String(value));
  };
}

export function floatReader(column: Column, bitWidth: 16 | 32 | 64): (row: number) => number {
  const { length } = column;
  if (bitWidth === 16) {
    const values = float16Table();
    const bits = column.buffer(0, Uint16Array, length);
    return (row) => values[bits[row]!]!;
  }
  const values =
    bitWidth === 32
      ? column.buffer(0, Float32Array, length)
      : column.buffer(0, Float64Array, length);
  return (row) => values[row]!;
}

/** Built once. */
let table: Float32Array | undefined;

/** The value of each bit pattern. */
export function float16Table(): Float32Array {
  table ??= Float32Array.from({ length: 65_536 }, (_, bits) => float16Value(bits));
  return table;
}

/** Sign, 5 bits of exponent, 10 of fraction; the least exponent is for zero and what is below 2^-14. */
function float16Value(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}
