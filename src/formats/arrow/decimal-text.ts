// Decimals of 32 to 256 bits as exact number text.

import type { Column } from './columns.js';

/** The integer of each row. */
export function unscaledDecimals(column: Column, bitWidth: number): (row: number) => bigint {
  const words = bitWidth / 32;
  const values = column.buffer(0, Int32Array, column.length * words);
  return (row) => {
    const last = row * words + words - 1;
    // The highest word has the sign.
    let value = BigInt(values[last]!);
    for (let i = last - 1; i >= row * words; i--) value = (value << 32n) | BigInt(values[i]! >>> 0);
    return value;
  };
}

/** `value` / 10^scale. */
export function decimalText(value: bigint, scale: number): string {
  if (scale === 0 || (scale < 0 && value === 0n)) return String(value);
  const sign = value < 0n ? '-' : '';
  const digits = String(value < 0n ? -value : value);
  if (scale < 0) return `${sign}${digits}${'0'.repeat(-scale)}`;
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}
