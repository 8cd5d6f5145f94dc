// Reads columns of integers and floats of every width, as numbers or as text, which is exact where a number would be
// rounded.

import { float16Table } from '../../common/elements.js';
import type { ArrowColumn } from './columns.js';
import type { FloatType, IntType } from './schema.js';
import type { Utf8Builder } from './utf8-builder.js';

export type NarrowIntegers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array;

/** Returns integers of up to 32 bits, in place. */
export function narrowIntegers(
  column: ArrowColumn,
  { bitWidth, isSigned }: IntType,
): NarrowIntegers {
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

/** Creates a reader of 64-bit integers: numbers if exact, otherwise bigints. */
export function wideIntegers(
  column: ArrowColumn,
  isSigned: boolean,
): (row: number) => number | bigint {
  const { length } = column;
  const halves = column.buffer(0, Int32Array, length * 2);
  const big = isSigned
    ? column.buffer(0, BigInt64Array, length)
    : column.buffer(0, BigUint64Array, length);
  return (row) => {
    const low = halves[row * 2]!;
    const high = halves[row * 2 + 1]!;
    // Most integers are within ±2^53 and need no bigint.
    if (high >= -0x200000 && high < 0x200000 && (isSigned || high >= 0)) {
      return high * 2 ** 32 + (low >>> 0);
    }
    return big[row]!;
  };
}

/** Creates a writer of exact decimal integers. */
export function integerWriter(
  column: ArrowColumn,
  type: IntType,
  out: Utf8Builder,
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

/** Creates a reader of integers or floats. Integers beyond ±2^53 are rounded. */
export function numberReader(
  column: ArrowColumn,
  type: IntType | FloatType,
): (row: number) => number {
  if (type.kind === 'float') return floatReader(column, type.bitWidth);
  if (type.bitWidth < 64) {
    const values = narrowIntegers(column, type);
    return (row) => values[row]!;
  }
  const read = wideIntegers(column, type.isSigned);
  return (row) => Number(read(row));
}

export function floatReader(
  column: ArrowColumn,
  bitWidth: FloatType['bitWidth'],
): (row: number) => number {
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
