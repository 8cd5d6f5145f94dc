// Rows on their way from a file to the server, some thousands at a time, whatever the format; and
// what all readers share: how ids and numbers are checked and how errors are spelled.

import { CliError } from '../failure.js';

export interface RowBatch {
  readonly rowCount: number;
  /** A hole where the file names none; undefined where it names none at all. */
  readonly ids: readonly (string | undefined)[] | undefined;
  /** Row-major [rowCount, dimension] float32, all finite. */
  readonly values: Float32Array;
  readonly dimension: number;
  /** JSON objects as text; undefined where no row has any. */
  readonly metadata: readonly string[] | undefined;
  /** `file:line` or `file, row n`, n from 1: for errors. */
  place(row: number): string;
}

export interface RowReader {
  /** Of the whole file, where it says so. */
  readonly rowCount: number | undefined;
  /** The rows from `startRow` on, which is counted from 0. Throws CliError with the place. */
  batches(startRow: number): AsyncIterable<RowBatch>;
}

export interface ReadOptions {
  /** Undefined: `id`, where there is one. */
  readonly idField: string | undefined;
  /** Undefined: the first of VALUES_FIELDS that is there. */
  readonly valuesField: string | undefined;
  /** Fields that become metadata; undefined for what the format means by default. */
  readonly fields: readonly string[] | undefined;
  /** One column a dimension, of CSV. */
  readonly vectorColumns: readonly string[] | undefined;
  /** Of CSV; undefined: tabs in .tsv, else commas. */
  readonly delimiter: string | undefined;
  /** Of HDF5. */
  readonly dataset: string | undefined;
  readonly rowsPerBatch: number;
}

export const VALUES_FIELDS = ['values', 'vector', 'embedding'] as const;

/** A batch is one write, in memory several times: more bytes than this make it no faster. */
const BATCH_BYTES_MAX = 8_000_000;

export function rowsPerBatch(dimension: number, rowsMax: number): number {
  const rowBytes = Math.max(1, dimension) * Float32Array.BYTES_PER_ELEMENT;
  return Math.max(1, Math.min(rowsMax, Math.floor(BATCH_BYTES_MAX / rowBytes)));
}

export function rowError(place: string, message: string): CliError {
  return new CliError(`${place}: ${message}`);
}

/** A value in an error: as JSON, cut short. */
export function show(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}

/** Throws CliError unless every number is finite as float32. */
export function toFloat32(place: string, field: string, numbers: ArrayLike<unknown>): Float32Array {
  const values = new Float32Array(numbers.length);
  for (let at = 0; at < values.length; at++) {
    const found = numbers[at];
    if (typeof found !== 'number') {
      throw rowError(place, `${field}[${at}] is ${show(found)}, expected a number`);
    }
    values[at] = found;
    if (!Number.isFinite(values[at])) {
      throw rowError(place, `${field}[${at}] is ${found}, expected a number within float32`);
    }
  }
  return values;
}

/** The index of the first value that is not finite, or -1. */
export function indexOfInfinite(values: Float32Array): number {
  // The difference is 0 for every finite number, else NaN.
  for (let at = 0; at < values.length; at++) if (values[at]! - values[at]! !== 0) return at;
  return -1;
}

/** Throws CliError for the first value that is not finite. */
export function checkFinite(
  batch: Pick<RowBatch, 'values' | 'dimension' | 'place'>,
  field: string,
): void {
  const at = indexOfInfinite(batch.values);
  if (at === -1) return;
  const place = batch.place(Math.floor(at / batch.dimension));
  throw rowError(
    place,
    `${field}[${at % batch.dimension}] is ${batch.values[at]}, expected a finite float32 number`,
  );
}

interface Row {
  /** Of the place: a line, or a row from 1. */
  readonly number: number;
  readonly id: string | undefined;
  readonly values: Float32Array;
  readonly metadata: string;
}

/** Gathers rows that come one after another. */
export class BatchBuilder {
  readonly #rowsMax: number;
  readonly #place: (number: number) => string;
  #dimension: number | undefined;
  #first = 0;
  #rows: Row[] = [];

  constructor(rowsMax: number, place: (number: number) => string) {
    this.#rowsMax = rowsMax;
    this.#place = place;
  }

  /** A batch, when this row fills one. Throws CliError for a row of another dimension. */
  add(row: Row): RowBatch | undefined {
    const { length } = row.values;
    if (this.#dimension === undefined) {
      this.#dimension = length;
      this.#first = row.number;
    }
    if (length !== this.#dimension) {
      throw rowError(
        this.#place(row.number),
        `found ${length} values, expected ${this.#dimension} as at ${this.#place(this.#first)}`,
      );
    }
    this.#rows.push(row);
    const isFull = this.#rows.length >= rowsPerBatch(length, this.#rowsMax);
    return isFull ? this.take() : undefined;
  }

  /** What is left; undefined when that is nothing. */
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
      metadata: rows.map((row) => row.metadata),
      place: (row) => this.#place(rows[row]!.number),
    };
  }
}
