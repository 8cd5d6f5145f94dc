// Reads rows from an Arrow IPC stream or file: a column of ids, a column of lists of numbers, and other columns, which
// become metadata. Reads one record batch at a time, never the whole file.

import { SagittaError } from '../common/errors.js';
import { parseExactJson } from '../common/exact-json.js';
import type { Utf8Column } from '../common/types.js';
import { stringAt } from '../common/utf8-column.js';
import { chooseId, chooseVectors, VECTOR_NAMES } from '../formats/arrow/column-choice.js';
import { type ArrowColumn, isValid, openColumns } from '../formats/arrow/columns.js';
import type { EncodedBatch } from '../formats/arrow/encoded-batch.js';
import { ArrowFileReader } from '../formats/arrow/file-reader.js';
import { readIds } from '../formats/arrow/ids.js';
import { readMetadata } from '../formats/arrow/json-columns.js';
import { jsonViolation } from '../formats/arrow/json-fields.js';
import { numberReader } from '../formats/arrow/numbers.js';
import { type RowIssue, RowIssues } from '../formats/arrow/row-issues.js';
import type { ArrowField } from '../formats/arrow/schema.js';
import { ArrowStreamReader } from '../formats/arrow/stream-reader.js';
import { isTextField, readStrings } from '../formats/arrow/strings.js';
import { UUID_EXTENSION } from '../formats/arrow/uuids.js';
import { isVectorField, readVectors } from '../formats/arrow/vectors.js';
import { PLAIN_NUMBERS, vectorOfText } from './cells.js';
import type { InputSource } from './input-source.js';
import { listNames, noSuchName } from './names.js';
import { ReadError, RowError } from './read-error.js';
import { indexColumns, type ReaderOptions, UNNAMED_ONLY } from './reader-options.js';
import {
  type RowBatch,
  type RowReader,
  rowsPerBatch,
  type Sample,
  unsupportedVector,
  withoutBadRows,
} from './row-batch.js';

/** Limit for a record batch: the size of a typed array that every platform supports. */
const BATCH_BYTES_MAX = 2_000_000_000;
/** Both are far beyond the limits of the server, which checks and reports them itself. */
const ID_BYTES_MAX = 100_000;
const METADATA_BYTES_MAX = 64_000_000;

export async function openArrowStream(
  source: InputSource,
  options: ReaderOptions,
): Promise<RowReader> {
  const { name } = source;
  return {
    rowCount: undefined,
    batches: (startRow) => rowsOfArrow(name, source.chunks(), options, startRow),
    sample: (rowCount) => sampleOfArrow(name, source.chunks(), rowCount),
  };
}

export async function openArrowFile(
  source: InputSource,
  options: ReaderOptions,
): Promise<RowReader> {
  const { name } = source;
  return {
    rowCount: undefined,
    batches: async function* (startRow) {
      yield* rowsOfBatches(name, await openFile(source), options, startRow);
    },
    sample: async (rowCount) => await sampleOf(name, await openFile(source), rowCount),
  };
}

/** The part of a file that a stream was decoded from, and facts about columns that the stream does not state. */
interface StreamPlace {
  /** The format of the file, for messages. */
  readonly format: string;
  /** The position of the stream's first row in the file, from 0. */
  readonly firstRow: number;
  /** Columns whose 16-byte values are UUIDs, which the schema of the stream does not say. */
  readonly uuidColumns: readonly string[];
}

const ARROW = 'Arrow IPC';
const IN_STREAM: StreamPlace = { format: ARROW, firstRow: 0, uuidColumns: [] };

/** Throws ReadError. */
export async function* rowsOfArrow(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  options: ReaderOptions,
  startRow: number,
  place: StreamPlace = IN_STREAM,
): AsyncGenerator<RowBatch> {
  yield* rowsOfBatches(name, await openStream(name, chunks, place), options, startRow);
}

/** Throws ReadError. */
export async function sampleOfArrow(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  rowCount: number,
  place: StreamPlace = IN_STREAM,
): Promise<Sample> {
  return await sampleOf(name, await openStream(name, chunks, place), rowCount);
}

/** A stream or a file, after its schema has been read. */
interface BatchSource {
  readonly format: string;
  /** The position of the first row in the file, from 0. */
  readonly firstRow: number;
  readonly fields: readonly ArrowField[];
  batches(): AsyncGenerator<EncodedBatch>;
}

async function openStream(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  { format, firstRow, uuidColumns }: StreamPlace,
): Promise<BatchSource> {
  const reader = new ArrowStreamReader(chunks, { batchBytesMax: BATCH_BYTES_MAX });
  const schema = await wrapErrors(name, () => reader.readSchema(), format);
  const fields = schema.fields.map((field) =>
    uuidColumns.includes(field.name) ? { ...field, extension: UUID_EXTENSION } : field,
  );
  async function* batches(): AsyncGenerator<EncodedBatch> {
    for await (const batch of reader.batches()) yield { ...batch, fields };
  }
  return { format, firstRow, fields, batches };
}

async function openFile({ name, file }: InputSource): Promise<BatchSource> {
  const bytes = {
    byteLength: file!.byteCount,
    async readInto(target: Uint8Array, offset: number): Promise<void> {
      target.set(await file!.read(offset, offset + target.length));
    },
  };
  const reader = await wrapErrors(name, () => ArrowFileReader.open(bytes, BATCH_BYTES_MAX));
  const { fields } = reader.schema;
  return { format: ARROW, firstRow: 0, fields, batches: () => reader.batches() };
}

/** The first rows, with every column that has a JSON form. */
async function sampleOf(
  name: string,
  { format, fields, batches }: BatchSource,
  rowCount: number,
): Promise<Sample> {
  const named = fields.map((field, index) => ({ name: field.name, index }));
  const readableColumns = named.filter(({ index }) => jsonViolation(fields[index]!) === null);
  const found = batches();
  const next = await wrapErrors(name, () => found.next(), format);
  if (next.done) return { columns: named.map((column) => column.name), rows: [] };
  const rows = await wrapErrors(
    name,
    async () => {
      const columns = openColumns(next.value, BATCH_BYTES_MAX);
      const count = Math.min(rowCount, next.value.rowCount);
      const text = readMetadata({
        count,
        objects: null,
        members: readableColumns.map(({ index }) => columns[index]!),
        rowBytesMax: METADATA_BYTES_MAX,
        bytesMax: BATCH_BYTES_MAX,
        isNanNull: true,
        issues: new RowIssues(),
      });
      return text === null
        ? []
        : textsOf(text, count).map((row) => parseExactJson(row || '{}') as Record<string, unknown>);
    },
    format,
  );
  await found.return(undefined);
  return { columns: readableColumns.map((column) => column.name), rows };
}

async function* rowsOfBatches(
  name: string,
  source: BatchSource,
  options: ReaderOptions,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const { format, fields, firstRow } = source;
  const plan = await wrapErrors(name, async () => planColumns(name, fields, options));
  const batches = source.batches();
  let { dimension } = options;
  try {
    while (true) {
      const next = await wrapErrors(name, () => batches.next(), format);
      if (next.done) return;
      const batch = next.value;
      const before = firstRow + batch.firstRow;
      if (before + batch.rowCount <= startRow) continue;
      const location = (row: number) => `${name}, row ${before + row + 1}`;
      const { rows, problems } = await wrapErrors(
        name,
        async () => {
          const columns = openColumns(batch, BATCH_BYTES_MAX);
          dimension ??= dimensionOf(columns, plan, location);
          return readRows(columns, { ...plan, dimension, before, location }, batch, options);
        },
        format,
      );
      for (const slice of slicesOf(rows, Math.max(0, startRow - before), options.rowsPerBatch)) {
        const first = slice.fileRow(0) - before;
        const own = new Map(
          [...problems]
            .filter(([row]) => row >= first && row < first + slice.rowCount)
            .map(([row, problem]) => [row - first, problem]),
        );
        if (yield* withoutBadRows(slice, own, options)) return;
      }
    }
  } finally {
    await batches.return(undefined);
  }
}

/** The columns of id, vectors and metadata, as indexes into the schema. */
interface ColumnPlan {
  readonly id: number | null;
  /** The column of the unnamed vector, or one column per value; empty for rows without it. */
  readonly values: readonly number[];
  readonly hasNumberColumns: boolean;
  /** The columns of named vectors, with the dimensions that the collection gives them. */
  readonly named: readonly {
    readonly name: string;
    readonly dimension: number;
    readonly index: number;
  }[];
  /** Column names for error messages. */
  readonly names: Readonly<Record<RowIssue['member'], string>>;
  readonly objects: number | null;
  readonly members: readonly number[];
}

function planColumns(
  name: string,
  fields: readonly ArrowField[],
  options: ReaderOptions,
): ColumnPlan {
  const names = fields.map((field) => field.name);
  const indexOf = (column: string, option: string): number => {
    const index = names.indexOf(column);
    if (index !== -1) return index;
    throw noSuchName(name, 'column', { name: column, option, names });
  };
  const { idField } = options;
  if (idField != null) indexOf(idField, '--id-field');
  const id = idField === null ? null : chooseId(fields, idField);
  const several = options.vectorColumns?.map((each) => indexOf(each, '--vector-columns'));
  const values = several ?? vectorColumn(name, fields, options, indexOf);
  const { named: expected } = options.vectors ?? UNNAMED_ONLY;
  const named = [...expected].flatMap(([vectorName, dimension]) => {
    const index = fields.findIndex((field) => field.name === `vectors.${vectorName}`);
    return index === -1 ? [] : [{ name: vectorName, dimension, index }];
  });
  const excluded = new Set(options.exclude?.map((each) => indexOf(each, '--exclude')));
  const isNamed = (index: number) => named.some((vector) => vector.index === index);
  const other = fields.find(
    ({ name: column }, index) =>
      /^(sparse_)?vectors\./.test(column) && !isNamed(index) && !excluded.has(index),
  );
  if (other !== undefined && options.fields === undefined) {
    throw unsupportedVector(name, other.name);
  }
  const selected = options.fields?.map((each) => indexOf(each, '--fields'));
  const indexes = selected === undefined ? indexColumns(names) : new Set<number>();
  const others = fields
    .map((_, at) => at)
    .filter((at) => !options.withoutIndex || !indexes.has(at));
  const chosen = (selected ?? others).filter(
    (at) => at !== id && !values.includes(at) && !isNamed(at) && !excluded.has(at),
  );
  const isObject = (index: number): boolean => {
    const { name: field, type, dictionary } = fields[index]!;
    if (field !== 'metadata') return false;
    const isNested = (type.kind === 'struct' || type.kind === 'map') && dictionary === null;
    return isNested || isTextField(fields[index]!);
  };
  if (indexes.size > 0)
    options.onIndex?.(chosen.filter((at) => indexes.has(at)).map((at) => names[at]!));
  for (const index of chosen) {
    const violation = jsonViolation(fields[index]!);
    if (violation === null) continue;
    throw new ReadError(
      `${name}: column ${JSON.stringify(fields[index]!.name)} cannot be metadata: ${violation}`,
      { advice: ' Name it with --exclude, or select others with --fields.' },
    );
  }
  return {
    id,
    values,
    hasNumberColumns: several !== undefined,
    named,
    names: {
      id: id === null ? 'id' : fields[id]!.name,
      query_id: 'query_id',
      values: values.length === 1 ? fields[values[0]!]!.name : 'values',
      metadata: 'metadata',
    },
    objects: chosen.find(isObject) ?? null,
    members: chosen.filter((index) => !isObject(index)),
  };
}

/** The column of the unnamed vector, which holds lists of numbers or text. Throws ReadError. */
function vectorColumn(
  name: string,
  fields: readonly ArrowField[],
  { valuesField, vectors = UNNAMED_ONLY }: ReaderOptions,
  indexOf: (column: string, option: string) => number,
): number[] {
  const names = fields.map((field) => field.name);
  const wanted =
    valuesField === undefined
      ? (VECTOR_NAMES.map((each) => names.indexOf(each)).find((index) => index !== -1) ?? -1)
      : indexOf(valuesField, '--values-field');
  if (wanted !== -1 && isTextField(fields[wanted]!)) return [wanted];
  const chosen = chooseVectors(fields, valuesField);
  if (chosen !== null) return [chosen];
  if (!vectors.hasUnnamed || vectors.isPatch) return [];
  throw new ReadError(
    `${name}: no column is named values, vector or embedding (columns: ${listNames(names)}); ` +
      'name the vector column with --values-field',
  );
}

/** The list size of the column's type or, for lists of variable length, the length of the first vector. */
function dimensionOf(
  columns: readonly ArrowColumn[],
  { values, hasNumberColumns, names }: ColumnPlan,
  location: (row: number) => string,
): number {
  if (hasNumberColumns || values.length === 0) return values.length;
  const column = columns[values[0]!]!;
  const { type } = column.field;
  if (type.kind === 'fixed_size_list') return type.listSize;
  if (isTextField(column.field)) {
    const { text } = readStrings(column, BATCH_BYTES_MAX);
    return vectorOfText(location(0), stringAt(text, 0), PLAIN_NUMBERS).length;
  }
  const issues = new RowIssues();
  // No vector has dimension -1, so the first one is reported, with its actual length.
  readVectors(column, { dimension: -1, bytesMax: BATCH_BYTES_MAX, issues });
  const [first] = issues.items;
  if (typeof first?.actual === 'number') return first.actual;
  throw new RowError(location(first?.row ?? 0), `${names.values}: ${first?.detail}`);
}

interface RowsToRead extends ColumnPlan {
  readonly dimension: number;
  /** Number of rows before the batch in the file. */
  readonly before: number;
  location(row: number): string;
}

/** All rows of a record batch, and the problems of bad rows by row. */
function readRows(
  columns: readonly ArrowColumn[],
  plan: RowsToRead,
  { rowCount }: Pick<EncodedBatch, 'rowCount'>,
  { isNanNull = false, onBadRow }: ReaderOptions,
): { rows: RowBatch; problems: ReadonlyMap<number, string> } {
  const { dimension, before, location } = plan;
  const problems = new Map<number, string>();
  const keepsGoodRows = onBadRow !== undefined;
  const issues = new RowIssues(keepsGoodRows ? rowCount : undefined);
  const bytesMax = BATCH_BYTES_MAX;
  const values = readUnnamed(columns, plan, rowCount, { issues, keepsGoodRows, problems });
  const named = plan.named.map(({ index, name, dimension: length }) => {
    const toRead = { name, dimension: length, bytesMax, issues, mayBeNull: true, keepsGoodRows };
    const { validity } = columns[index]!;
    const presence = Uint8Array.from({ length: rowCount }, (_, row) =>
      isValid(validity, row) ? 1 : 0,
    );
    return { name, dimension: length, presence, values: readVectors(columns[index]!, toRead) };
  });
  const ids =
    plan.id === null
      ? null
      : readIds(columns[plan.id]!, { idBytesMax: ID_BYTES_MAX, bytesMax, issues });
  const metadata = readMetadata({
    count: rowCount,
    objects: plan.objects === null ? null : columns[plan.objects]!,
    members: plan.members.map((index) => columns[index]!),
    rowBytesMax: METADATA_BYTES_MAX,
    bytesMax,
    isNanNull,
    issues,
  });
  for (const issue of issues.items) {
    if (!problems.has(issue.row)) problems.set(issue.row, problemOf(issue, plan));
  }
  const isComplete = problems.size === 0 || keepsGoodRows;
  if (!isComplete) {
    const row = Math.min(...problems.keys());
    throw new RowError(location(row), problems.get(row)!);
  }
  const rows: RowBatch = {
    rowCount,
    ids: ids === null ? undefined : textsOf(ids, rowCount),
    values,
    dimension,
    named,
    metadata: metadata === null ? undefined : textsOf(metadata, rowCount),
    location,
    fileRow: (row) => before + row,
    endRow: before + rowCount,
  };
  return { rows, problems };
}

function problemOf(issue: RowIssue, { names }: ColumnPlan): string {
  const { member, code, expected, actual } = issue;
  const detail =
    code === 'dimension_mismatch' && member === 'values'
      ? `found ${actual} values, expected ${expected} as in the previous rows`
      : issue.detail + (issue.detail.includes('found NaN') ? ` ${NAN_HINT}` : '');
  return `${names[member] ?? member}: ${detail}`;
}

interface RowProblems {
  readonly issues: RowIssues;
  readonly keepsGoodRows: boolean;
  /** Receives the problems of rows whose vectors are not lists. */
  readonly problems: Map<number, string>;
}

/** Row-major [rowCount, dimension] float32. */
function readUnnamed(
  columns: readonly ArrowColumn[],
  { values: indexes, hasNumberColumns, dimension, location }: RowsToRead,
  rowCount: number,
  { issues, keepsGoodRows, problems }: RowProblems,
): Float32Array {
  const [first] = indexes;
  if (first === undefined) return new Float32Array(0);
  const column = columns[first]!;
  if (!hasNumberColumns && isVectorField(column.field)) {
    return readVectors(column, { dimension, bytesMax: BATCH_BYTES_MAX, issues, keepsGoodRows });
  }
  const values = new Float32Array(rowCount * dimension);
  const read = hasNumberColumns
    ? numbersOf(indexes.map((index) => columns[index]!))
    : textReader(column, location);
  for (let row = 0; row < rowCount; row++) {
    try {
      const vector = read(row);
      if (vector.length === dimension) values.set(vector, row * dimension);
      else problems.set(row, `found ${vector.length} values, expected ${dimension}`);
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
      problems.set(row, error.rowProblem);
    }
  }
  return values;
}

function textReader(column: ArrowColumn, location: (row: number) => string) {
  const { text, validity } = readStrings(column, BATCH_BYTES_MAX);
  return (row: number): Float32Array => {
    if (isValid(validity, row))
      return vectorOfText(location(row), stringAt(text, row), PLAIN_NUMBERS);
    throw new RowError(location(row), `${column.field.name} is null, expected a vector`);
  };
}

/** Reads a vector whose values are in separate columns. */
function numbersOf(columns: readonly ArrowColumn[]): (row: number) => Float32Array {
  const readers = columns.map((column) => {
    const { type, name } = column.field;
    const isNumber = (type.kind === 'int' || type.kind === 'float') && column.dictionary === null;
    if (!isNumber) throw new ReadError(`the column ${JSON.stringify(name)} does not hold numbers`);
    return { name, validity: column.validity, read: numberReader(column, type) };
  });
  return (row) =>
    Float32Array.from(readers, ({ name, validity, read }) => {
      const value = isValid(validity, row) ? Math.fround(read(row)) : Number.NaN;
      if (Number.isFinite(value)) return value;
      throw new RowError('', `${name} is not a float32 number`);
    });
}

const NAN_HINT = 'Store null instead with --nan null.';

/** Splits the rows of a record batch, of which there may be any number, into batches of at most `rowsMax`. */
function* slicesOf(rows: RowBatch, from: number, rowsMax: number): Generator<RowBatch> {
  const { rowCount, dimension, named = [] } = rows;
  const valueCount = named.reduce((sum, vector) => sum + vector.dimension, dimension);
  const step = rowsPerBatch(valueCount, rowsMax);
  for (let first = from; first < rowCount; first += step) {
    const end = Math.min(rowCount, first + step);
    yield {
      rowCount: end - first,
      ids: rows.ids?.slice(first, end),
      values: rows.values.subarray(first * dimension, end * dimension),
      dimension,
      named: named.map((vector) => ({
        ...vector,
        values: vector.values.subarray(first * vector.dimension, end * vector.dimension),
        presence: vector.presence.subarray(first, end),
      })),
      metadata: rows.metadata?.slice(first, end),
      location: (row) => rows.location(first + row),
      fileRow: (row) => rows.fileRow(first + row),
      endRow: rows.fileRow(end),
    };
  }
}

function textsOf(column: Utf8Column, count: number): string[] {
  return Array.from({ length: count }, (_, row) => stringAt(column, row));
}

/** Adds the file name to errors of the Arrow reader. */
async function wrapErrors<Value>(
  name: string,
  read: () => Promise<Value>,
  format = ARROW,
): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (!(cause instanceof SagittaError)) throw cause;
    if (cause.code !== 'invalid_arrow') throw new ReadError(`${name}: ${cause.message}`, { cause });
    const reason = cause.message
      .replace(/\.$/, '')
      .replace(/^(Found|Expected) /, (word) => word.toLowerCase());
    throw new ReadError(`${name}: invalid ${format}: ${reason}`, { cause });
  }
}
