// A collection with named vectors, and its rows.

import { type Bitmap, createBitmap, setBit } from '../../../src/common/bitmap.js';
import { utf8ColumnOf } from '../../../src/common/utf8-column.js';
import {
  type ColumnToWrite,
  encodeEnd,
  encodeRecordBatch,
  encodeSchema,
  type FieldToWrite,
} from '../../../src/formats/arrow/ipc-writer.js';

export interface Row {
  readonly id: string;
  readonly values: readonly number[];
  readonly vectors: { readonly title?: readonly number[]; readonly image?: readonly number[] };
  readonly metadata: { readonly n: number };
}

/** Each named vector is present in some rows and missing in others, also in neighbours. */
export const ROWS: readonly Row[] = Array.from({ length: 700 }, (_, n) => ({
  id: `v${n}`,
  values: [n, 1],
  vectors: {
    ...(n % 3 === 0 ? {} : { title: [n, n + 0.5, -1] }),
    ...(n % 64 < 40 ? { image: [0.25, n] } : {}),
  },
  metadata: { n },
}));

export const SHAPES = { title: { dimension: 3, metric: 'dot' }, image: { dimension: 2 } };
export const NDJSON = 'application/x-ndjson';
export const ARROW = 'application/vnd.apache.arrow.stream';
export const LINES = ROWS.map((row) => `${JSON.stringify(row)}\n`).join('');

export function arrowOf(
  rows: readonly Row[],
  titleDimension = 3,
  column = 'vectors.title',
): Buffer {
  const fields: FieldToWrite[] = [
    { name: 'id', type: 'utf8' },
    { name: 'values', type: { vectorOf: 2 } },
    { name: column, type: { vectorOf: titleDimension }, isNullable: true },
    { name: 'vectors.image', type: { vectorOf: 2 }, isNullable: true },
    { name: 'n', type: 'int32' },
  ];
  const columns: ColumnToWrite[] = [
    { leaf: utf8ColumnOf(rows.map(({ id }) => id)) },
    { vectors: Float32Array.from(rows.flatMap(({ values }) => values)) },
    nullable(
      rows.map(({ vectors }) => vectors.title),
      titleDimension,
    ),
    nullable(
      rows.map(({ vectors }) => vectors.image),
      2,
    ),
    { leaf: Int32Array.from(rows, ({ metadata }) => metadata.n) },
  ];
  return Buffer.concat([
    encodeSchema(fields),
    ...encodeRecordBatch(rows.length, columns),
    encodeEnd(),
  ]);
}

/** The elements of nulls are NaN, which must not be read. */
function nullable(vectors: readonly (readonly number[] | undefined)[], dimension: number) {
  const presence: Bitmap = createBitmap(vectors.length);
  const values = new Float32Array(vectors.length * dimension).fill(Number.NaN);
  for (const [row, vector] of vectors.entries()) {
    if (vector === undefined) continue;
    values.set(vector, row * dimension);
    setBit(presence, row);
  }
  return { vectors: values, presence };
}
