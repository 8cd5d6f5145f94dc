// Columns of integers of every width as numbers, or exactly as text where a number would round.

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
