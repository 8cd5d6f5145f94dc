// The output of every reader: batches of a few thousand rows in columns, whatever the format of the file.

import { findNotFinite } from '../formats/arrow/vectors.js';
import { ReadError, RowError, show } from './read-error.js';
import { type ReaderOptions, type TargetVectors, UNNAMED_ONLY } from './reader-options.js';

/** A named vector of all rows. `presence` is 1 for rows that have it and 0 for the others, whose values are zeros. */
export interface NamedVectors {
  readonly name: string;
  readonly dimension: number;
  /** Row-major [rowCount, dimension]. */
  readonly values: Float32Array;
  readonly presence: Uint8Array;
}

export interface RowBatch {
  readonly rowCount: number;
  /** An entry is undefined for a row without an id; the list is undefined when no row has one. */
  readonly ids: readonly (string | undefined)[] | undefined;
  /** Row-major [rowCount, dimension] float32, all finite. */
  readonly values: Float32Array;
  /** 0 when the rows lack the unnamed vector. */
  readonly dimension: number;
  /** All named vectors of the collection; each row may lack any of them. */
  readonly named?: readonly NamedVectors[] | undefined;
  /** Texts that become the unnamed vectors, which the rows then lack. */
  readonly texts?: readonly string[] | undefined;
  /** JSON objects as text; undefined when no row has metadata. */
  readonly metadata: readonly string[] | undefined;
  /** `file:line` or `file, row n` (from 1), for error messages. */
  location(row: number): string;
  /** The position of a row in the file, from 0. */
  fileRow(row: number): number;
  /** The position in the file of the first row after the batch. */
  readonly endRow: number;
}

export interface RowReader {
  /** Number of rows in the file; undefined where the format does not state it. */
  readonly rowCount: number | undefined;
  /** The rows from `startRow` (from 0) on. Throws ReadError with the location of an invalid row. */
  batches(startRow: number): AsyncIterable<RowBatch>;
  /** The first rows, for choosing columns. Throws ReadError. */
  sample(rowCount: number): Promise<Sample>;
}

/** The first rows of a file, before any choice of columns. */
export interface Sample {
  readonly columns: readonly string[];
  /** Values by column: strings for CSV, otherwise JSON values or, for vectors, typed arrays. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/**
 * Bytes of values and metadata per batch. A batch is one write, and several copies of it are in memory; larger batches
 * are not faster.
 */
const BATCH_BYTES_MAX = 8_000_000;
/** A batch also ends after this many bad rows, so that those of a wholly invalid file do not accumulate. */
const BAD_ROWS_MAX = 1_000;

export function rowsPerBatch(dimension: number, rowsMax: number): number {
  const rowBytes = Math.max(1, dimension) * Float32Array.BYTES_PER_ELEMENT;
  return Math.max(1, Math.min(rowsMax, Math.floor(BATCH_BYTES_MAX / rowBytes)));
}

/** Throws RowError unless every number is finite as float32. */
export function toFloat32(
  location: string,
  field: string,
  numbers: ArrayLike<unknown>,
): Float32Array {
  const values = new Float32Array(numbers.length);
  for (let at = 0; at < values.length; at++) {
    const found = numbers[at];
    if (typeof found !== 'number') {
      throw new RowError(location, `${field}[${at}] is ${show(found)}, expected a number`);
    }
    values[at] = found;
    if (!Number.isFinite(values[at])) {
      throw new RowError(location, `${field}[${at}] is ${found}, which exceeds the float32 range`);
    }
  }
  return values;
}

/** The error for a column that is named like a vector but cannot be imported as one. */
export function unsupportedVector(location: string, column: string): ReadError {
  return new ReadError(
    `${location}: the column ${JSON.stringify(column)} holds a sparse vector, a multi-vector or a vector that the collection does not have, which import does not send; ` +
      'write the file to the API as it is, or select the metadata with --fields',
  );
}

/** Throws RowError when the vectors of a batch do not fit into the collection. */
export function checkBatchDimension(batch: RowBatch, dimension: number, collection: string): void {
  if (batch.dimension === dimension) return;
  if (dimension === 0) {
    throw new RowError(batch.location(0), `collection ${collection} has no unnamed vectors`);
  }
  throw new RowError(
    batch.location(0),
    `found ${batch.dimension} values, but collection ${collection} has dimension ${dimension}`,
  );
}

/** Rows that consist of a vector only. */
export interface PlainRows {
  /** Row-major [rowCount, dimension]. */
  readonly values: Float32Array;
  readonly dimension: number;
  /** The position of the first row in the file. */
  readonly firstRow: number;
  /** The name of the vectors in messages. Absent: `values`. */
  readonly field?: string;
  location(fileRow: number): string;
}

/** Yields the rows whose values are all finite as a batch. Returns whether reading should stop. Throws RowError. */
export function* plainBatch(
  { values, dimension, firstRow, field = 'values', location }: PlainRows,
  options: Pick<ReaderOptions, 'onBadRow' | 'dimension'>,
): Generator<RowBatch, boolean> {
  const rowCount = values.length / dimension;
  const problems = new Map<number, string>();
  for (let row = 0; row < rowCount; row++) {
    const at = findNotFinite(values.subarray(row * dimension));
    if (at === -1) break;
    row += Math.floor(at / dimension);
    const value = at % dimension;
    const found = values[row * dimension + value];
    problems.set(row, `${field}[${value}] is ${found}, expected a finite float32 number`);
    if (options.onBadRow === undefined) break;
  }
  const batch: RowBatch = {
    rowCount,
    ids: undefined,
    values,
    dimension,
    metadata: undefined,
    location: (row) => location(firstRow + row),
    fileRow: (row) => firstRow + row,
    endRow: firstRow + rowCount,
  };
  return yield* withoutBadRows(batch, problems, options);
}

/**
 * Yields the batch without its bad rows. Returns whether reading should stop. Throws RowError for a bad row when the
 * options have no `onBadRow`.
 */
export function* withoutBadRows(
  batch: RowBatch,
  problems: ReadonlyMap<number, string>,
  { onBadRow }: Pick<ReaderOptions, 'onBadRow'>,
): Generator<RowBatch, boolean> {
  for (const row of [...problems.keys()].sort((a, b) => a - b)) {
    const problem = problems.get(row)!;
    if (onBadRow === undefined) throw new RowError(batch.location(row), problem);
    if (onBadRow({ row: batch.fileRow(row), problem }) === 'skip') continue;
    const before = Array.from({ length: row }, (_, at) => at).filter((at) => !problems.has(at));
    yield { ...pickRows(batch, before), endRow: batch.fileRow(row) };
    return true;
  }
  const isGood = (row: number) => !problems.has(row);
  yield problems.size === 0
    ? batch
    : pickRows(batch, Array.from({ length: batch.rowCount }, (_, row) => row).filter(isGood));
  return false;
}

/** A batch of the given rows of `batch`; `rows` is ascending. */
export function pickRows(batch: RowBatch, rows: readonly number[]): RowBatch {
  const { dimension, ids, metadata, named, texts } = batch;
  return {
    rowCount: rows.length,
    ids: ids && rows.map((row) => ids[row]),
    values: takeVectors(batch.values, dimension, rows),
    dimension,
    named: named?.map((vectors) => ({
      ...vectors,
      values: takeVectors(vectors.values, vectors.dimension, rows),
      presence: Uint8Array.from(rows, (row) => vectors.presence[row]!),
    })),
    texts: texts && rows.map((row) => texts[row]!),
    metadata: metadata && rows.map((row) => metadata[row]!),
    location: (row) => batch.location(rows[row]!),
    fileRow: (row) => batch.fileRow(rows[row]!),
    endRow: batch.endRow,
  };
}

function takeVectors(
  values: Float32Array,
  dimension: number,
  rows: readonly number[],
): Float32Array {
  const taken = new Float32Array(rows.length * dimension);
  rows.forEach((row, at) => {
    taken.set(values.subarray(row * dimension, (row + 1) * dimension), at * dimension);
  });
  return taken;
}

/** The first vectors of a file, and their ids if it has them. */
export async function sampleOfVectors(
  reader: Pick<RowReader, 'batches'>,
  rowCount: number,
): Promise<Sample> {
  for await (const { ids, values, dimension, ...batch } of reader.batches(0)) {
    // All rows of the batch may be bad.
    if (batch.rowCount === 0) continue;
    const rows = Array.from({ length: Math.min(rowCount, batch.rowCount) }, (_, row) => ({
      ...(ids !== undefined && { id: ids[row] }),
      values: values.slice(row * dimension, (row + 1) * dimension),
    }));
    return { columns: ids === undefined ? ['values'] : ['id', 'values'], rows };
  }
  return { columns: [], rows: [] };
}

export interface ParsedRow {
  readonly id: string | undefined;
  /** Empty when the row has no unnamed vector. */
  readonly values: Float32Array;
  /** The named vectors of the row. */
  readonly vectors?: ReadonlyMap<string, Float32Array>;
  readonly metadata: string;
}

/** A row that was found in a file but not yet parsed. */
export interface FoundRow {
  /** The line of the row, or its row number from 1. */
  readonly number: number;
  /** Throws RowError. */
  parse(): ParsedRow;
}

export interface RowsToBatch {
  /** All rows of the file, from the first one. */
  readonly rows: AsyncIterable<FoundRow>;
  readonly startRow: number;
  location(number: number): string;
}

/** Collects single rows into batches. Rows before `startRow` are not parsed. Throws RowError. */
export async function* collectBatches(
  { rows, startRow, location }: RowsToBatch,
  options: ReaderOptions,
): AsyncGenerator<RowBatch> {
  const { onBadRow } = options;
  const builder = new BatchBuilder(location, options);
  let fileRow = -1;
  let badCount = 0;
  for await (const row of rows) {
    if (++fileRow < startRow) continue;
    try {
      builder.add(row.number, fileRow, row.parse());
    } catch (error) {
      if (onBadRow === undefined || !(error instanceof RowError)) throw error;
      const isStopped = onBadRow({ row: fileRow, problem: error.rowProblem }) === 'stop';
      if (isStopped) {
        yield builder.take(fileRow);
        return;
      }
      badCount++;
    }
    if (!builder.isFull && badCount < BAD_ROWS_MAX) continue;
    yield builder.take(fileRow + 1);
    badCount = 0;
  }
  if (builder.rowCount > 0 || badCount > 0) yield builder.take(fileRow + 1);
}

interface NumberedRow extends ParsedRow {
  readonly number: number;
  readonly fileRow: number;
}

class BatchBuilder {
  readonly #location: RowsToBatch['location'];
  readonly #rowsMax: number;
  readonly #named: TargetVectors['named'];
  #dimension: number | undefined;
  /** Where the dimension comes from, for messages. */
  #dimensionOf = '';
  #rows: NumberedRow[] = [];
  #metadataCharacters = 0;

  constructor(
    location: RowsToBatch['location'],
    { rowsPerBatch: rowsMax, vectors = UNNAMED_ONLY, dimension }: ReaderOptions,
  ) {
    this.#location = location;
    this.#rowsMax = rowsMax;
    this.#named = vectors.named;
    this.#dimension = dimension;
  }

  get rowCount(): number {
    return this.#rows.length;
  }

  get isFull(): boolean {
    if (this.#rows.length === 0) return false;
    const valueCount = [...this.#named.values()].reduce((sum, count) => sum + count, 0);
    return (
      this.#rows.length >= rowsPerBatch(this.#dimension! + valueCount, this.#rowsMax) ||
      this.#metadataCharacters >= BATCH_BYTES_MAX
    );
  }

  /** Throws RowError for a row of a different dimension. */
  add(number: number, fileRow: number, row: ParsedRow): void {
    const { length } = row.values;
    if (this.#dimension === undefined) {
      this.#dimension = length;
      this.#dimensionOf = ` as in ${this.#location(number)}`;
    }
    if (length !== this.#dimension) {
      const expected = `${this.#dimension}${this.#dimensionOf}`;
      throw new RowError(this.#location(number), `found ${length} values, expected ${expected}`);
    }
    this.#rows.push({ ...row, number, fileRow });
    this.#metadataCharacters += row.metadata.length;
  }

  /** Returns the rows added so far, possibly none, and starts the next batch. */
  take(endRow: number): RowBatch {
    const rows = this.#rows;
    this.#rows = [];
    this.#metadataCharacters = 0;
    const dimension = this.#dimension ?? 0;
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
      fileRow: (row) => rows[row]!.fileRow,
      endRow,
    };
  }
}

function namedOf(rows: readonly ParsedRow[], name: string, dimension: number): NamedVectors {
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
