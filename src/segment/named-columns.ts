// Vectors as Arrow columns, as segment files and log records have them: the unnamed one, if there is one, and
// `vectors.<name>`, null in rows without the vector.

import {
  type Bitmap,
  clearTail,
  createBitmap,
  createFullBitmap,
  setBit,
} from '../common/bitmap.js';
import type { Column } from '../formats/arrow/columns.js';
import type { FieldToWrite } from '../formats/arrow/ipc-writer.js';

const PREFIX = 'vectors.';

export function namedFields(
  named: readonly { readonly name: string; readonly dimension: number }[],
): FieldToWrite[] {
  return named.map(({ name, dimension }) => ({
    name: columnOfName(name),
    type: { vectorOf: dimension },
    isNullable: true,
  }));
}

export function columnOfName(name: string): string {
  return `${PREFIX}${name}`;
}

/** The name of the vector whose column has this name; undefined for other columns. */
export function nameOfColumn(column: string): string | undefined {
  return column.startsWith(PREFIX) ? column.slice(PREFIX.length) : undefined;
}

/** The values of a column of vectors, `length` in all; empty where there is no column. */
export function readValues(column: Column | undefined, length: number): Float32Array {
  if (column === undefined) return new Float32Array(0);
  return column.children[0]!.buffer(0, Float32Array, length);
}

/** A copy of the validity of a column, whose words are aligned; null has all bits. */
export function bitmapOfValidity(validity: Uint8Array | null, length: number): Bitmap {
  if (validity === null) return createFullBitmap(length);
  const bitmap = createBitmap(length);
  new Uint8Array(bitmap.words.buffer).set(validity.subarray(0, (length + 7) >>> 3));
  clearTail(bitmap);
  return bitmap;
}

/** One bit for each flag that is not 0. */
export function bitmapOfFlags(flags: Uint8Array): Bitmap {
  const bitmap = createBitmap(flags.length);
  for (let row = 0; row < flags.length; row++) if (flags[row] !== 0) setBit(bitmap, row);
  return bitmap;
}
