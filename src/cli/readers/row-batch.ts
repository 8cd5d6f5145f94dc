// The common output of all readers: batches of some thousands of rows, independent of the file format;
// and what the readers share: checks of numbers and the form of error messages.

import { findNotFinite } from '../../formats/arrow/vectors.js';
import { CliError } from '../failure.js';

/** A dense vector of rows, with a flag per row: 1 for those that have it, while the others have zeros. */
export interface NamedVectors {
  readonly name: string;
  readonly dimension: number;
  /** Row-major [rowCount, dimension]. */
  readonly values: Float32Array;
  readonly presence: Uint8Array;
}

export interface RowBatch {
  readonly rowCount: number;
  /** Undefined for rows without an id; undefined as a whole when no row has one. */
  readonly ids: readonly (string | undefined)[] | undefined;
  /** Row-major [rowCount, dimension] float32, all finite. */
  readonly values: Float32Array;
  /** 0 for rows without the unnamed vector. */
  readonly dimension: number;
  /** All named vectors of the collection, of which rows may lack any; absent for none. */
  readonly named?: readonly NamedVectors[] | undefined;
  /** JSON objects as text; undefined when no row has metadata. */
  readonly metadata: readonly string[] | undefined;
  /** `file:line` or `file, row n` (from 1), for error messages. */
  location(row: number): string;
}

export interface RowReader {
  /** Rows of the whole file, where the format states them. */
  readonly rowCount: number | undefined;
  /** The rows from `startRow` (from 0) on. Throws CliError with the location of an invalid row. */
  batches(startRow: number): AsyncIterable<RowBatch>;
}

/** What separates the fraction of a number. */
export type DecimalPoint = '.' | ',';

/** What the options of a command say of the rows of a file. */
export interface ReadChoices {
  /** Field of the id; absent: `id`, if there is one. */
  readonly idField?: string | undefined;
  /** Field of the vector; absent: the first of VECTOR_NAMES that exists. */
  readonly valuesField?: string | undefined;
  /** Fields that become metadata; absent: the default of the format. */
  readonly fields?: readonly string[] | undefined;
  /** Fields that do not become metadata; absent for none. */
  readonly exclude?: readonly string[] | undefined;
  /** CSV only: one column per value. */
  readonly vectorColumns?: readonly string[] | undefined;
  /** CSV only; absent: tab for .tsv, else comma. */
  readonly delimiter?: string | undefined;
  /** CSV only; absent: `.`. */
  readonly decimal?: DecimalPoint | undefined;
  /** The dataset of an HDF5 file or the array of an npz archive; absent: the default of the format. */
  readonly dataset?: string | undefined;
}

export interface ReadOptions extends ReadChoices {
  /** Whether NaN in metadata becomes null; absent: an error, since JSON does not have it. */
  readonly isNanNull?: boolean | undefined;
  /** Leaves out columns of indexes (INDEX_COLUMN) that no option names. */
  readonly withoutIndex?: boolean | undefined;
  /** Gets the names of those that become metadata. */
  readonly onIndex?: ((names: readonly string[]) => void) | undefined;
  readonly rowsPerBatch: number;
  /** Of the collection; absent: rows have the unnamed vector only. */
  readonly vectors?: TargetVectors | undefined;
}

/** The vectors that a collection takes. */
export interface TargetVectors {
  readonly hasUnnamed: boolean;
  /** The dimensions of the named vectors, by name. */
  readonly named: ReadonlyMap<string, number>;
  /** Whether rows change vectors that there are, and may lack the unnamed vector. */
  readonly isPatch?: boolean;
}

/**
 * The names that pandas gives the index of a table that has no name of its own: in Parquet and Arrow, and when a
 * CSV file with a column without a name is read. The latter is the first column, as R and pandas write it.
 */
const INDEX_COLUMN = /^(__index_level_\d+__|Unnamed: 0(\.\d+)*)$/;

/** The columns, of those with these names, that are probably an index. */
export function indexColumns(names: readonly string[]): ReadonlySet<number> {
  const found = names.flatMap((name, at) => {
    const isUnnamed = at === 0 && name === '' && names.length > 1;
    return isUnnamed || INDEX_COLUMN.test(name) ? [at] : [];
  });
  return new Set(found);
}

export const UNNAMED_ONLY: TargetVectors = { hasUnnamed: true, named: new Map() };

/** Bytes of values per batch. A batch is one write and in memory several times; larger is not faster. */
const BATCH_BYTES_MAX = 8_000_000;

export function rowsPerBatch(dimension: number, rowsMax: number): number {
  const rowBytes = Math.max(1, dimension) * Float32Array.BYTES_PER_ELEMENT;
  return Math.max(1, Math.min(rowsMax, Math.floor(BATCH_BYTES_MAX / rowBytes)));
}

export function rowError(location: string, message: string): CliError {
  return new CliError(`${location}: ${message}`);
}

/** A value for an error message: as JSON, truncated. */
export function show(value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const text = isNumber ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}

/** Throws CliError unless every number is finite as float32. */
export function toFloat32(
  location: string,
  field: string,
  numbers: ArrayLike<unknown>,
): Float32Array {
  const values = new Float32Array(numbers.length);
  for (let at = 0; at < values.length; at++) {
    const found = numbers[at];
    if (typeof found !== 'number') {
      throw rowError(location, `${field}[${at}] is ${show(found)}, expected a number`);
    }
    values[at] = found;
    if (!Number.isFinite(values[at])) {
      throw rowError(location, `${field}[${at}] is ${found}, which exceeds the float32 range`);
    }
  }
  return values;
}

/** A batch of rows that have nothing but a vector. Throws CliError for the first value that is not finite. */
export function plainBatch(
  rows: Pick<RowBatch, 'values' | 'dimension' | 'location'>,
  field = 'values',
): RowBatch {
  const { values, dimension, location } = rows;
  const at = findNotFinite(values);
  if (at !== -1) {
    throw rowError(
      location(Math.floor(at / dimension)),
      `${field}[${at % dimension}] is ${values[at]}, expected a finite float32 number`,
    );
  }
  return { ...rows, rowCount: values.length / dimension, ids: undefined, metadata: undefined };
}

/** The error for a column of a named vector that cannot be one. */
export function otherVector(location: string, column: string): CliError {
  return rowError(
    location,
    `the column ${JSON.stringify(column)} is of a sparse vector, a multi-vector or one that the collection does not have, which import does not send; ` +
      'write the file to the API as it is, or select the metadata with --fields',
  );
}

/** Throws CliError when the vectors of a batch do not fit into the collection. */
export function checkBatchDimension(batch: RowBatch, dimension: number, collection: string): void {
  if (batch.dimension === dimension) return;
  if (dimension === 0) {
    throw rowError(batch.location(0), `collection ${collection} has no unnamed vectors`);
  }
  throw rowError(
    batch.location(0),
    `found ${batch.dimension} values, but collection ${collection} has dimension ${dimension}`,
  );
}

interface Row {
  /** The line of the row, or its row number from 1. */
  readonly number: number;
  readonly id: string | undefined;
  readonly values: Float32Array;
  /** The named vectors that it has. */
  readonly vectors?: ReadonlyMap<string, Float32Array>;
  readonly metadata: string;
}

/** Collects single rows into batches. */
export class BatchBuilder {
  readonly #rowsMax: number;
  readonly #location: (number: number) => string;
  readonly #named: TargetVectors['named'];
  #dimension: number | undefined;
  #first = 0;
  #rows: Row[] = [];

  constructor(
    rowsMax: number,
    location: (number: number) => string,
    { named }: TargetVectors = UNNAMED_ONLY,
  ) {
    this.#rowsMax = rowsMax;
    this.#location = location;
    this.#named = named;
  }

  /** Returns a batch when this row completes one. Throws CliError for a row of another dimension. */
  add(row: Row): RowBatch | undefined {
    const { length } = row.values;
    if (this.#dimension === undefined) {
      this.#dimension = length;
      this.#first = row.number;
    }
    if (length !== this.#dimension) {
      throw rowError(
        this.#location(row.number),
        `found ${length} values, expected ${this.#dimension} as in ${this.#location(this.#first)}`,
      );
    }
    this.#rows.push(row);
    const valueCount = [...this.#named.values()].reduce((sum, count) => sum + count, length);
    const isFull = this.#rows.length >= rowsPerBatch(valueCount, this.#rowsMax);
    return isFull ? this.take() : undefined;
  }

  /** The remaining rows; undefined when there are none. */
  take(): RowBatch | undefined {
    const rows = this.#rows;
    if (rows.length === 0) return undefined;
    this.#rows = [];
    const dimension = this.#dimension!;
    const values = new Float32Array(rows.length * dimension);
    rows.forEach((row, at) => {
      values.set(row.values, at * dimension);
    });
    return {
      rowCount: rows.length,
      ids: rows.map((row) => row.id),
      values,
      dimension,
      named: [...this.#named].map(([name, length]) => namedOf(rows, name, length)),
      metadata: rows.map((row) => row.metadata),
      location: (row) => this.#location(rows[row]!.number),
    };
  }
}

function namedOf(rows: readonly Row[], name: string, dimension: number): NamedVectors {
  const values = new Float32Array(rows.length * dimension);
  const presence = new Uint8Array(rows.length);
  for (const [at, { vectors }] of rows.entries()) {
    const vector = vectors?.get(name);
    if (vector === undefined) continue;
    values.set(vector, at * dimension);
    presence[at] = 1;
  }
  return { name, dimension, values, presence };
}
