// The columns of rows as segment files and log records have them, in the order of both. Each column stands here
// once, with its fields and what writes it, so that a file cannot have its columns in another order than its
// schema says.

import type { Bitmap } from '../common/bitmap.js';
import type { MultiColumn, SparseColumn, Utf8Column } from '../common/types.js';
import type { BodyWriter, FieldToWrite } from '../formats/arrow/ipc-writer.js';
import { sparseFields } from '../formats/arrow/sparse-fields.js';
import { type MultiShape, multiFields, writeMulti } from './multi-columns.js';
import { namedFields } from './named-columns.js';
import { writeSparse } from './sparse-columns.js';

/** What decides which columns there are. */
export interface RowShape {
  /** Of the unnamed vector; 0 without it. */
  readonly dimension: number;
  readonly named: readonly { readonly name: string; readonly dimension: number }[];
  readonly multi: readonly MultiShape[];
  /** The names of the sparse vectors. */
  readonly sparse: readonly string[];
  /** Whether each row has the sequence of the write that inserted it. */
  readonly hasSequences: boolean;
}

/** Rows of a shape: their vectors are in its order. */
export interface RowsToWrite {
  readonly count: number;
  readonly ids: Utf8Column;
  /** [count × dimension] */
  readonly values: Float32Array;
  /** Metadata as JSON. */
  readonly metadata: Utf8Column;
  /** [count]; empty if the shape has none. */
  readonly insertedSequences: Float64Array;
  /** `values`: [count × dimension]; rows without the vector have zeros. */
  readonly named: readonly { readonly values: Float32Array; readonly presence: Bitmap }[];
  readonly multi: readonly MultiColumn[];
  readonly sparse: readonly SparseColumn[];
}

interface RowColumn {
  readonly fields: readonly FieldToWrite[];
  write(body: BodyWriter, rows: RowsToWrite): void;
}

export function rowFields(columns: readonly RowColumn[]): FieldToWrite[] {
  return columns.flatMap(({ fields }) => fields);
}

export function writeRows(
  columns: readonly RowColumn[],
  body: BodyWriter,
  rows: RowsToWrite,
): void {
  for (const column of columns) column.write(body, rows);
}

export function rowColumns(shape: RowShape): RowColumn[] {
  const { dimension, named, multi, sparse, hasSequences } = shape;
  return [
    ID,
    ...(dimension === 0 ? [] : [valuesColumn(dimension)]),
    METADATA,
    ...(hasSequences ? [INSERTED_SEQUENCE] : []),
    ...named.map((vector, i): RowColumn => {
      return {
        fields: namedFields([vector]),
        write(body, rows) {
          const { values, presence } = rows.named[i]!;
          body.vectors(values, rows.count, presence);
        },
      };
    }),
    ...multi.map((vectors, i): RowColumn => {
      return {
        fields: multiFields([vectors]),
        write: (body, rows) => writeMulti(body, rows.multi[i]!, rows.count),
      };
    }),
    ...sparse.map((name, i): RowColumn => {
      return {
        fields: sparseFields([name]),
        write: (body, rows) => writeSparse(body, rows.sparse[i]!, rows.count),
      };
    }),
  ];
}

const ID: RowColumn = {
  fields: [{ name: 'id', type: 'utf8' }],
  write: (body, { ids, count }) => body.utf8(ids, 0, count),
};

const METADATA: RowColumn = {
  fields: [{ name: 'metadata', type: 'utf8' }],
  write: (body, { metadata, count }) => body.utf8(metadata, 0, count),
};

const INSERTED_SEQUENCE: RowColumn = {
  fields: [{ name: 'inserted_sequence', type: 'int64' }],
  write(body, { insertedSequences, count }) {
    body.node(count);
    body.noNulls();
    body.buffer(int64Of(insertedSequences));
  },
};

function valuesColumn(dimension: number): RowColumn {
  return {
    fields: [{ name: 'values', type: { vectorOf: dimension } }],
    write: (body, { values, count }) => body.vectors(values, count),
  };
}

/** int64 as little-endian pairs of words. A BigInt64Array would create an object per row. */
function int64Of(sequences: Float64Array): Uint32Array {
  const words = new Uint32Array(sequences.length * 2);
  for (let row = 0; row < sequences.length; row++) {
    words[row * 2] = sequences[row]! % 2 ** 32;
    words[row * 2 + 1] = Math.floor(sequences[row]! / 2 ** 32);
  }
  return words;
}
