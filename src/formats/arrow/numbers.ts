// Columns of integers and floats of every width: as numbers, and as text that is exact where a number
// would round.

import { float16Table } from '../../common/elements.js';
import type { Column } from './columns.js';
import type { FloatType, IntType } from './schema.js';
import type { Utf8Builder } from './utf8-builder.js';

export type NarrowIntegers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array;

/** Integers of up to 32 bits, in place. */
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

/** Integers of 64 bits: numbers where they are exact, else bigints. */
export function wideIntegers(column: Column, isSigned: boolean): (row: number) => number | bigint {
  const { length } = column;
  const halves = column.buffer(0, Int32Array, length * 2);
  const big = isSigned
    ? column.buffer(0, BigInt64Array, length)
    : column.buffer(0, BigUint64Array, length);
  return (row) => {
    const low = halves[row * 2]!;
    const high = halves[row * 2 + 1]!;
    // Within ±2^53, as most integers are: no bigint is made.
    if (high >= -0x200000 && high < 0x200000 && (isSigned || high >= 0)) {
      return high * 2 ** 32 + (low >>> 0);
    }
    return big[row]!;
  };
}

/** Writes the integer of a row in decimal, exactly. */
export function integerWriter(
  column: Column,
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

/** The number of a row of a column of integers or floats; integers beyond ±2^53 are rounded. */
export function numberReader(column: Column, type: IntType | FloatType): (row: number) => number {
  if (type.kind === 'float') return floatReader(column, type.bitWidth);
  if (type.bitWidth < 64) {
    const values = narrowIntegers(column, type);
    return (row) => values[row]!;
  }
  const read = wideIntegers(column, type.isSigned);
  return (row) => Number(read(row));
}

export function floatReader(
  column: Column,
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
