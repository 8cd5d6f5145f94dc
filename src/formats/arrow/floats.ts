// Columns of floats of every width. A float16 comes, exactly, from a table of all 65 536 of them.

import type { Column } from './columns.js';

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
