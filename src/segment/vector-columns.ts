// Reads vectors from the Arrow columns of segment files and log records, which `formats/arrow` defines for each kind.
// Arrays are used in place; only their lengths and offsets are checked.

import { type Bitmap, clearTail, createBitmap } from '../common/bitmap.js';
import { unpackElements } from '../common/elements.js';
import {
  type ColumnOf,
  type ColumnSpec,
  type Named,
  specOf,
  type VectorColumn,
  type VectorKind,
} from '../common/vectors.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { ArrowColumn } from '../formats/arrow/columns.js';
import { readOffsets } from '../formats/arrow/offsets.js';

type Spec<Kind extends VectorKind> = Named<Extract<ColumnSpec, { readonly kind: Kind }>>;

/** Throws `data_corrupt`. */
type Read<Kind extends VectorKind> = (
  spec: Spec<Kind>,
  columns: readonly ArrowColumn[],
) => ColumnOf<Spec<Kind>>;

const READERS: { readonly [Kind in VectorKind]: Read<Kind> } = {
  dense(spec, [column]) {
    const { length, validity, children } = column!;
    const values = unpackElements(spec.element, length * spec.dimension, (StoredArray, count) =>
      children[0]!.buffer(0, StoredArray, count),
    );
    return { ...specOf(spec), values, presence: bitmapOfValidity(validity, length) };
  },
  multi({ name, dimension }, [column]) {
    const vectors = column!.children[0]!;
    const starts = readOffsets(column!, false, vectors.length);
    const vectorCount = starts.at(-1)!;
    if (starts[0] !== 0)
      throw corrupt(`vectors of "${name}" from ${starts[0]} on`, { expected: 'vectors from 0 on' });
    const values = vectors.children[0]!.buffer(0, Float32Array, vectorCount * dimension);
    return { kind: 'multi', dimension, starts, values };
  },
  sparse({ name }, columns) {
    const [starts, valueStarts] = columns.map((column) =>
      readOffsets(column, false, column.children[0]!.length),
    ) as [Int32Array, Int32Array];
    const row = starts.findIndex((start, i) => start !== valueStarts[i]);
    if (row >= 0) {
      throw corrupt(`values of "${name}" from ${valueStarts[row]} on in row ${row}`, {
        expected: `values from ${starts[row]} on`,
      });
    }
    const [indices, values] = columns.map(({ children }) => children[0]!) as [
      ArrowColumn,
      ArrowColumn,
    ];
    const itemCount = starts.at(-1)!;
    return {
      kind: 'sparse',
      starts,
      indices: indices.buffer(0, Uint32Array, itemCount),
      values: values.buffer(0, Float32Array, itemCount),
    };
  },
};

/**
 * Throws `data_corrupt`.
 * @param columns one for each field of this kind of vector.
 */
export function readStoredVectors(
  spec: Named<ColumnSpec>,
  columns: readonly ArrowColumn[],
): VectorColumn {
  const read = READERS[spec.kind] as (
    ...args: Parameters<typeof readStoredVectors>
  ) => VectorColumn;
  return read(spec, columns);
}

/** Copies the validity of a column into aligned words. Null means that every row is valid. */
function bitmapOfValidity(validity: Uint8Array | null, length: number): Bitmap | null {
  if (validity === null) return null;
  const bitmap = createBitmap(length);
  new Uint8Array(bitmap.words.buffer).set(validity.subarray(0, (length + 7) >>> 3));
  clearTail(bitmap);
  return bitmap;
}
