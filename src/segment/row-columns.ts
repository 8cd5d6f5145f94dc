// The columns of rows in segment files and log records, in this order. Each column is defined once, with its fields,
// writer and reader, so that the columns of a file cannot be in another order than its schema says.

import { sharedFloat64 } from '../common/shared-array.js';
import type { Utf8Column } from '../common/types.js';
import { type ColumnSpec, isSpec, type Named, specOf } from '../common/vectors.js';
import { corrupt } from '../formats/arrow/arrow-errors.js';
import type { ArrowColumn } from '../formats/arrow/columns.js';
import type { ColumnToWrite, FieldToWrite } from '../formats/arrow/ipc-writer.js';
import type { ArrowSchema } from '../formats/arrow/schema.js';
import { readUtf8 } from '../formats/arrow/strings.js';
import { columnsOfVectors, fieldsOfVectors } from '../formats/arrow/vector-kinds.js';
import { readStoredVectors } from './vector-columns.js';

export interface StoredRows {
  readonly ids: Utf8Column;
  /** Metadata as JSON. */
  readonly json: Utf8Column;
  /** [rowCount], ascending integers below 2^53: the write that inserted each row. Null in log records, which are one write. */
  readonly insertedSequences: Float64Array | null;
  readonly vectors: readonly Named[];
}

interface RowColumn {
  readonly fields: readonly FieldToWrite[];
  /** Returns one column per field. */
  write(rows: StoredRows): readonly ColumnToWrite[];
  /** Reads one column per field. Throws `data_corrupt`. */
  read(columns: readonly ArrowColumn[]): Partial<StoredRows>;
}

/** The key in the metadata of a schema for the vectors, as JSON, in the order of their columns. */
const VECTORS_KEY = 'sagitta.vectors';

interface RowColumnsOptions {
  /** Whether the sequence of its insertion is stored with each row. */
  readonly hasSequences: boolean;
}

export class RowColumns {
  readonly #columns: readonly RowColumn[];
  readonly fields: readonly FieldToWrite[];
  /** Entries for the metadata of the schema. */
  readonly metadata: readonly (readonly [string, string])[];

  /** Returns the columns that the metadata of a schema declares. Throws `data_corrupt`. */
  static of({ metadata }: ArrowSchema, options: RowColumnsOptions): RowColumns {
    const text = metadata.get(VECTORS_KEY);
    const specs = JSON.parse(text ?? 'null') as readonly Partial<Named<ColumnSpec>>[] | null;
    const isKnown = (spec: Partial<Named<ColumnSpec>>): spec is Named<ColumnSpec> =>
      typeof spec.name === 'string' && isSpec(spec);
    if (Array.isArray(specs) && specs.every(isKnown)) return new RowColumns(specs, options);
    throw corrupt(`the vectors ${text}`, { expected: 'names, kinds and dimensions' });
  }

  constructor(vectors: readonly Named<ColumnSpec>[], { hasSequences }: RowColumnsOptions) {
    const specs = vectors.map(({ name, ...spec }) => ({ name, ...specOf(spec) }));
    this.metadata = [[VECTORS_KEY, JSON.stringify(specs)]];
    this.#columns = [
      ID,
      METADATA,
      ...(hasSequences ? [INSERTED_SEQUENCE] : []),
      ...vectors.map(vectorColumn),
    ];
    this.fields = this.#columns.flatMap(({ fields }) => fields);
  }

  /**
   * Returns one column per field.
   * @param rows hold the vectors in the order that the constructor was given.
   */
  write(rows: StoredRows): ColumnToWrite[] {
    return this.#columns.flatMap(({ write }) => write(rows));
  }

  /**
   * Throws `data_corrupt`.
   * @param columns begin with those of `fields`.
   */
  read(columns: readonly ArrowColumn[]): StoredRows {
    let next = 0;
    const parts = this.#columns.map(({ fields, read }) => {
      const from = next;
      next += fields.length;
      return read(columns.slice(from, next));
    });
    const vectors = parts.flatMap((part) => part.vectors ?? []);
    return Object.assign({ insertedSequences: null }, ...parts, { vectors }) as StoredRows;
  }
}

const ID: RowColumn = {
  fields: [{ name: 'id', type: 'utf8' }],
  write: ({ ids }) => [{ leaf: ids }],
  read: ([column]) => ({ ids: readUtf8(column!) }),
};

const METADATA: RowColumn = {
  fields: [{ name: 'metadata', type: 'utf8' }],
  write: ({ json }) => [{ leaf: json }],
  read: ([column]) => ({ json: readUtf8(column!) }),
};

const INSERTED_SEQUENCE: RowColumn = {
  fields: [{ name: 'inserted_sequence', type: 'int64' }],
  write: ({ insertedSequences }) => [{ leaf: int64Of(insertedSequences!) }],
  read: ([column]) => ({ insertedSequences: readSequences(column!) }),
};

function vectorColumn(spec: Named<ColumnSpec>, index: number): RowColumn {
  return {
    fields: fieldsOfVectors(spec),
    write: ({ vectors }) => columnsOfVectors(vectors[index]!),
    read: (columns) => ({ vectors: [{ name: spec.name, ...readStoredVectors(spec, columns) }] }),
  };
}

/** Writes int64 values as little-endian pairs of words, because assigning to a BigInt64Array creates an object per row. */
function int64Of(sequences: Float64Array): BigInt64Array {
  const words = new Uint32Array(sequences.length * 2);
  for (let row = 0; row < sequences.length; row++) {
    words[row * 2] = sequences[row]! % 2 ** 32;
    words[row * 2 + 1] = Math.floor(sequences[row]! / 2 ** 32);
  }
  return new BigInt64Array(words.buffer);
}

function readSequences(column: ArrowColumn): Float64Array {
  const words = column.buffer(0, Uint32Array, column.length * 2);
  const sequences = sharedFloat64(column.length);
  let previous = 0;
  for (let row = 0; row < sequences.length; row++) {
    const sequence = words[row * 2 + 1]! * 2 ** 32 + words[row * 2]!;
    if (sequence < previous || sequence > Number.MAX_SAFE_INTEGER) {
      throw corrupt(`the sequence ${sequence} after ${previous}`);
    }
    sequences[row] = sequence;
    previous = sequence;
  }
  return sequences;
}
