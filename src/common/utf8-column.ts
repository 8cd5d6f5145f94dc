// Columns of strings: created from arrays, read, and concatenated from rows of other columns.

import { decodeUtf8, encodeUtf8, utf8ByteCount } from './bytes.js';
import { assert } from './errors.js';
import type { Utf8Column } from './types.js';
import type { Memory } from './vectors.js';

/** The texts must not contain lone surrogates, because two of them in adjacent texts would merge into one character. */
export function utf8ColumnOf(texts: readonly string[]): Utf8Column {
  const bytes = encodeUtf8(texts.join(''));
  const offsets = new Int32Array(texts.length + 1);
  let end = 0;
  for (let i = 0; i < texts.length; i++) {
    end += utf8ByteCount(texts[i]!);
    offsets[i + 1] = end;
  }
  return { offsets, bytes };
}

export function stringAt({ offsets, bytes }: Utf8Column, row: number): string {
  return decodeUtf8(bytes, offsets[row]!, offsets[row + 1]!);
}

/** The rows from..to of a column. */
interface RowsOfText {
  readonly column: Utf8Column;
  readonly from: number;
  readonly to: number;
}

/** Copies the strings of all parts into one column. */
export function gatherText(parts: readonly RowsOfText[], memory: Memory): Utf8Column {
  let count = 0;
  let byteLength = 0;
  for (const { column, from, to } of parts) {
    count += to - from;
    byteLength += column.offsets[to]! - column.offsets[from]!;
  }
  assert(byteLength < 2 ** 31, `${byteLength} bytes of text in a column`);
  const offsets = memory.int32(count + 1);
  const bytes = memory.bytes(byteLength);
  let row = 0;
  for (const { column, from, to } of parts) {
    const start = column.offsets[from]!;
    const shift = offsets[row]! - start;
    bytes.set(column.bytes.subarray(start, column.offsets[to]!), start + shift);
    for (let i = from + 1; i <= to; i++) offsets[++row] = column.offsets[i]! + shift;
  }
  return { offsets, bytes };
}
