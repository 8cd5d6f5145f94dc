// Reads and checks offsets, which say where the elements of lists and the bytes of strings start and end, in each of
// Arrow's layouts, and indexes into dictionaries.

import { invalidArrow } from './arrow-errors.js';
import { type ArrowColumn, isValid } from './columns.js';
import { narrowIntegers, wideIntegers } from './numbers.js';
import { quoted } from './schema.js';

/** Value i spans the elements from `starts[i]` to `ends[i]`, exclusive, of the child. */
export interface Spans {
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** Returns length + 1 offsets, which never decrease and do not exceed `end`. Throws `invalid_arrow`. */
export function readOffsets(column: ArrowColumn, isLarge: boolean, end: number): Int32Array {
  // Some writers write no offsets for an empty column.
  if (column.length === 0) return new Int32Array(1);
  const count = column.length + 1;
  const offsets = isLarge ? readLow(column, 0, count) : column.buffer(0, Int32Array, count);
  const descending = findDescending(offsets);
  if (descending >= 0) {
    const previous = offsets[descending - 1] ?? 0;
    throw wrongOffset(column, descending, offsets[descending]!, `at least ${previous}`);
  }
  const last = offsets[count - 1]!;
  if (last > end) throw wrongOffset(column, count - 1, last, `at most ${end}`);
  return offsets;
}

/** Returns the index of the first offset that is negative or less than its predecessor, or -1. */
function findDescending(offsets: Int32Array): number {
  let previous = 0;
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i]!;
    if (offset < previous) return i;
    previous = offset;
  }
  return -1;
}

/** Reads the spans of lists, list views or maps. Throws `invalid_arrow`. */
export function readSpans(column: ArrowColumn): Spans {
  const { type } = column.field;
  const end = column.children[0]!.length;
  if (type.kind === 'list_view' || type.kind === 'large_list_view') {
    const isLarge = type.kind === 'large_list_view';
    const { length } = column;
    const starts = isLarge ? readLow(column, 0, length) : column.buffer(0, Int32Array, length);
    const sizes = isLarge ? readLow(column, 1, length) : column.buffer(1, Int32Array, length);
    const ends = new Int32Array(length);
    for (let i = 0; i < length; i++) {
      // The view of a null is never used.
      if (!isValid(column.validity, i)) continue;
      const [start, size] = [starts[i]!, sizes[i]!];
      if (start < 0 || size < 0 || start + size > end) {
        throw wrongOffset(column, i, start + size, `at most ${end}`);
      }
      ends[i] = start + size;
    }
    return { starts, ends };
  }
  const offsets = readOffsets(column, type.kind === 'large_list', end);
  return { starts: offsets, ends: offsets.subarray(1) };
}

/** Reads 64-bit offsets, which are below 2^31 in a batch of limited size. Throws `invalid_arrow`. */
function readLow(column: ArrowColumn, index: number, count: number): Int32Array {
  const halves = column.buffer(index, Int32Array, count * 2);
  const low = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    low[i] = halves[i * 2]!;
    if (halves[i * 2 + 1] !== 0 || low[i]! < 0) {
      const found = halves[i * 2 + 1]! * 2 ** 32 + (halves[i * 2]! >>> 0);
      throw wrongOffset(column, i, found, 'from 0 to 2147483647');
    }
  }
  return low;
}

/** Returns the index of each row into a dictionary of `count` values; -1 for null. Throws `invalid_arrow`. */
export function readIndexes(column: ArrowColumn, count: number): Int32Array {
  const { length, validity, field } = column;
  const { indexType } = field.dictionary!;
  const narrow = indexType.bitWidth === 64 ? null : narrowIntegers(column, indexType);
  const wide = narrow === null ? wideIntegers(column, indexType.isSigned) : null;
  const indexes = new Int32Array(length);
  for (let row = 0; row < length; row++) {
    if (!isValid(validity, row)) {
      indexes[row] = -1;
      continue;
    }
    const index = narrow === null ? Number(wide!(row)) : narrow[row]!;
    if (!(index >= 0 && index < count)) {
      throw invalidArrow(
        `index ${index} in row ${row} of ${quoted(field.name)}, whose dictionary has ${count} values`,
      );
    }
    indexes[row] = index;
  }
  return indexes;
}

function wrongOffset(column: ArrowColumn, index: number, found: number, expected: string): Error {
  return invalidArrow(`offset ${found} at index ${index} of column ${quoted(column.field.name)}`, {
    expected,
  });
}
