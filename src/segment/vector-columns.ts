// Vectors as the Arrow columns of segment files and log records, one entry for each kind: `values` or, named,
// `vectors.<name>` for dense vectors and lists of them, which are null in rows without the vector, and lists of equal
// lengths for the indices and values of sparse vectors, which are empty there.

import { type Bitmap, clearTail, createBitmap } from '../common/bitmap.js';
import { unpackElements } from '../common/elements.js';
import {
  type ColumnSpec,
  type Named,
  specOf,
  UNNAMED,
  type VectorColumn,
  type VectorKind,
} from '../common/vectors.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { Column } from '../formats/arrow/columns.js';
import type { ColumnToWrite, FieldToWrite } from '../formats/arrow/ipc-writer.js';
import { readOffsets } from '../formats/arrow/offsets.js';
import { sparseFields } from '../formats/arrow/sparse-fields.js';

interface StoredKind<Kind extends VectorKind> {
  /** The fields of the columns, in their order. */
  fields(spec: Named<Extract<ColumnSpec, { kind: Kind }>>): readonly FieldToWrite[];
  write(column: Extract<VectorColumn, { kind: Kind }>): readonly ColumnToWrite[];
  /** Throws `data_corrupt`. */
  read(
    spec: Named<Extract<ColumnSpec, { kind: Kind }>>,
    columns: readonly Column[],
  ): Extract<VectorColumn, { kind: Kind }>;
}

const dense: StoredKind<'dense'> = {
  fields: ({ name, dimension, element }) => [
    {
      name: columnName(name),
      type: { vectorOf: dimension, element },
      isNullable: name !== UNNAMED,
    },
  ],
  write: ({ values, presence, element }) => [{ vectors: values, presence, element }],
  read(spec, [column]) {
    const { length, validity, children } = column!;
    const values = unpackElements(spec.element, length * spec.dimension, (StoredArray, count) =>
      children[0]!.buffer(0, StoredArray, count),
    );
    return { ...specOf(spec), values, presence: bitmapOfValidity(validity, length) };
  },
};

const multi: StoredKind<'multi'> = {
  fields: ({ name, dimension }) => [
    { name: columnName(name), type: { vectorsOf: dimension }, isNullable: true },
  ],
  write: (multi) => [{ multi }],
  read({ name, dimension }, [column]) {
    const vectors = column!.children[0]!;
    const starts = readOffsets(column!, false, vectors.length);
    const vectorCount = starts.at(-1)!;
    if (starts[0] !== 0) throw corrupt(`vectors of "${name}" from ${starts[0]} on, expected 0`);
    const values = vectors.children[0]!.buffer(0, Float32Array, vectorCount * dimension);
    return { kind: 'multi', dimension, starts, values };
  },
};

const sparse: StoredKind<'sparse'> = {
  fields: ({ name }) => sparseFields([name]),
  write: ({ starts, indices, values }) => [
    { starts, elements: indices },
    { starts, elements: values },
  ],
  read({ name }, columns) {
    const [starts, valueStarts] = columns.map((column) =>
      readOffsets(column, false, column.children[0]!.length),
    ) as [Int32Array, Int32Array];
    const row = starts.findIndex((start, i) => start !== valueStarts[i]);
    if (row >= 0) {
      throw corrupt(
        `values of "${name}" from ${valueStarts[row]} on in row ${row}, expected ${starts[row]}`,
      );
    }
    const [indices, values] = columns.map(({ children }) => children[0]!) as [Column, Column];
    const itemCount = starts.at(-1)!;
    return {
      kind: 'sparse',
      starts,
      indices: indices.buffer(0, Uint32Array, itemCount),
      values: values.buffer(0, Float32Array, itemCount),
    };
  },
};

const KINDS: { readonly [Kind in VectorKind]: StoredKind<Kind> } = { dense, multi, sparse };

/** The entry of a kind that is known only when the program runs; specs and columns must be of that kind. */
export function storedKind<Spec extends ColumnSpec>({ kind }: Spec): StoredKind<Spec['kind']> {
  return KINDS[kind] as unknown as StoredKind<Spec['kind']>;
}

function columnName(name: string): string {
  return name === UNNAMED ? 'values' : `vectors.${name}`;
}

/** A copy of the validity of a column, whose words are aligned; null has all bits. */
function bitmapOfValidity(validity: Uint8Array | null, length: number): Bitmap | null {
  if (validity === null) return null;
  const bitmap = createBitmap(length);
  new Uint8Array(bitmap.words.buffer).set(validity.subarray(0, (length + 7) >>> 3));
  clearTail(bitmap);
  return bitmap;
}
