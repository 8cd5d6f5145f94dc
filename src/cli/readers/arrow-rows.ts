// Rows from an Arrow IPC stream or file: a column of ids, a column of lists of numbers, and further
// columns, which become metadata. Reads one record batch at a time, never the whole file.

import { open } from 'node:fs/promises';
import { SagittaError } from '../../common/errors.js';
import type { Utf8Column } from '../../common/types.js';
import { chooseId, chooseVectors } from '../../formats/arrow/column-choice.js';
import { type ArrowColumn, isValid, openColumns } from '../../formats/arrow/columns.js';
import type { EncodedBatch } from '../../formats/arrow/encoded-batch.js';
import { ArrowFileReader } from '../../formats/arrow/file-reader.js';
import { readIds } from '../../formats/arrow/ids.js';
import { readMetadata } from '../../formats/arrow/json-columns.js';
import { jsonViolation } from '../../formats/arrow/json-fields.js';
import { type RowIssue, RowIssues } from '../../formats/arrow/row-issues.js';

import type { ArrowField } from '../../formats/arrow/schema.js';
import { ArrowStreamReader } from '../../formats/arrow/stream-reader.js';
import { isTextField } from '../../formats/arrow/strings.js';
import { UUID_EXTENSION } from '../../formats/arrow/uuids.js';
import { readVectors } from '../../formats/arrow/vectors.js';
import { CliError } from '../failure.js';
import { listNames, noSuchName } from '../names.js';
import {
  indexColumns,
  otherVector,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  rowsPerBatch,
  UNNAMED_ONLY,
} from './row-batch.js';
import type { InputSource } from './source.js';

/** Limit of a record batch: what a typed array can hold on every platform. */
const BATCH_BYTES_MAX = 2_000_000_000;
/** Far beyond the server's limits, which the server checks and reports itself. */
const ID_BYTES_MAX = 100_000;
const METADATA_BYTES_MAX = 64_000_000;

/** A stream or a file, after its schema has been read. */
interface BatchSource {
  readonly format: string;
  readonly fields: readonly ArrowField[];
  batches(): AsyncGenerator<EncodedBatch>;
}

export async function openArrowStream(
  source: InputSource,
  options: ReadOptions,
): Promise<RowReader> {
  return {
    rowCount: undefined,
    batches: (startRow) => rowsOfArrow(source.name, source.chunks(), options, startRow),
  };
}

export async function openArrowFile(source: InputSource, options: ReadOptions): Promise<RowReader> {
  return { rowCount: undefined, batches: (startRow) => rowsOfFile(source, options, startRow) };
}

/** Where the rows of a stream are in a file, and what the file knows about its columns. */
interface StreamPlace {
  /** The format of the file, for errors. */
  readonly format: string;
  /** The number of the stream's first row in the file, from 0. */
  readonly firstRow: number;
  /** The columns whose 16 bytes are UUIDs, although the schema of the stream does not say so. */
  readonly uuidColumns: readonly string[];
}

const ARROW = 'Arrow IPC';
const IN_STREAM: StreamPlace = { format: ARROW, firstRow: 0, uuidColumns: [] };

/** Throws CliError. */
export async function* rowsOfArrow(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  options: ReadOptions,
  startRow: number,
  { format, firstRow, uuidColumns }: StreamPlace = IN_STREAM,
): AsyncGenerator<RowBatch> {
  const reader = new ArrowStreamReader(chunks, { batchBytesMax: BATCH_BYTES_MAX });
  const schema = await readable(name, () => reader.readSchema(), format);
  const fields = schema.fields.map((field) =>
    uuidColumns.includes(field.name) ? { ...field, extension: UUID_EXTENSION } : field,
  );
  async function* batches(): AsyncGenerator<EncodedBatch> {
    for await (const batch of reader.batches()) yield { ...batch, fields };
  }
  yield* rowsOfBatches(name, { format, fields, batches }, options, startRow, firstRow);
}

async function* rowsOfFile(
  source: InputSource,
  options: ReadOptions,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const { name } = source;
  const handle = await open(source.path!);
  try {
    const bytes = {
      byteLength: source.byteCount!,
      async readInto(target: Uint8Array, offset: number): Promise<void> {
        for (let done = 0; done < target.length; ) {
          const left = target.length - done;
          const { bytesRead } = await handle.read(target, done, left, offset + done);
          if (bytesRead === 0)
            throw new CliError(`${name}: the file ends at byte ${offset + done}, expected more`);
          done += bytesRead;
        }
        source.markRead((offset + target.length) / source.byteCount!);
      },
    };
    const reader = await readable(name, () => ArrowFileReader.open(bytes, BATCH_BYTES_MAX));
    const batches = () => reader.batches();
    const { fields } = reader.schema;
    yield* rowsOfBatches(name, { format: ARROW, fields, batches }, options, startRow, 0);
  } finally {
    await handle.close();
  }
}

async function* rowsOfBatches(
  name: string,
  source: BatchSource,
  options: ReadOptions,
  startRow: number,
  firstRow: number,
): AsyncGenerator<RowBatch> {
  const { format, fields } = source;
  const plan = await readable(name, async () => planColumns(name, fields, options));
  const batches = source.batches();
  let dimension: number | undefined;
  const { isNanNull } = options;
  try {
    while (true) {
      const next = await readable(name, () => batches.next(), format);
      if (next.done) return;
      const batch = next.value;
      const before = firstRow + batch.firstRow;
      if (before + batch.rowCount <= startRow) continue;
      const location = (row: number) => `${name}, row ${before + row + 1}`;
      const rows = await readable(
        name,
        async () => {
          const columns = openColumns(batch, BATCH_BYTES_MAX);
          dimension ??=
            plan.values === null ? 0 : dimensionOf(columns[plan.values]!, plan, location);
          return readRows(batch, columns, { ...plan, dimension, isNanNull }, location);
        },
        format,
      );
      yield* slicesOf(rows, Math.max(0, startRow - before), options.rowsPerBatch);
    }
  } finally {
    await batches.return(undefined);
  }
}

/** Which columns hold id, vector and metadata, as indexes into the schema. */
interface ColumnPlan {
  readonly id: number | null;
  /** Null for rows without the unnamed vector. */
  readonly values: number | null;
  /** Those of the named vectors of the collection that have one. */
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
  options: ReadOptions,
): ColumnPlan {
  const names = fields.map((field) => field.name);
  const indexOf = (column: string, option: string): number => {
    const index = names.indexOf(column);
    if (index !== -1) return index;
    throw noSuchName(name, 'column', { name: column, option, names });
  };
  if (options.idField !== undefined) indexOf(options.idField, '--id-field');
  if (options.valuesField !== undefined) indexOf(options.valuesField, '--values-field');
  const id = chooseId(fields, options.idField);
  const values = chooseVectors(fields, options.valuesField);
  const { hasUnnamed, named: expected, isPatch = false } = options.vectors ?? UNNAMED_ONLY;
  if (values === null && hasUnnamed && !isPatch) {
    throw new CliError(
      `${name}: no column is named values, vector or embedding (columns: ${listNames(names)}); ` +
        'name the vector column with --values-field',
    );
  }
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
    throw otherVector(name, other.name);
  }
  const selected = options.fields?.map((each) => indexOf(each, '--fields'));
  const indexes = selected === undefined ? indexColumns(names) : new Set<number>();
  const others = fields
    .map((_, at) => at)
    .filter((at) => !options.withoutIndex || !indexes.has(at));
  const chosen = (selected ?? others).filter(
    (at) => at !== id && at !== values && !isNamed(at) && !excluded.has(at),
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
    throw new CliError(
      `${name}: column ${JSON.stringify(fields[index]!.name)} cannot be metadata: ${violation} ` +
        'Name it with --exclude, or select others with --fields.',
    );
  }
  return {
    id,
    values,
    named,
    names: {
      id: id === null ? 'id' : fields[id]!.name,
      query_id: 'query_id',
      values: values === null ? 'values' : fields[values]!.name,
      metadata: 'metadata',
    },
    objects: chosen.find(isObject) ?? null,
    members: chosen.filter((index) => !isObject(index)),
  };
}

/** The list size of the column's type, or the length of the first list where it varies. */
function dimensionOf(
  column: ArrowColumn,
  plan: ColumnPlan,
  location: (row: number) => string,
): number {
  const { type } = column.field;
  if (type.kind === 'fixed_size_list') return type.listSize;
  const issues = new RowIssues();
  // No vector has dimension -1, so the first one is reported, with its actual length.
  readVectors(column, { dimension: -1, bytesMax: BATCH_BYTES_MAX, issues });
  const [first] = issues.items;
  if (typeof first?.actual === 'number') return first.actual;
  throw rowError(location(first?.row ?? 0), `${plan.names.values}: ${first?.detail}`);
}

function readRows(
  batch: EncodedBatch,
  columns: readonly ArrowColumn[],
  plan: ColumnPlan & { dimension: number; isNanNull: boolean | undefined },
  location: (row: number) => string,
): RowBatch {
  const { dimension, isNanNull = false } = plan;
  const issues = new RowIssues();
  const bytesMax = BATCH_BYTES_MAX;
  const values =
    plan.values === null
      ? new Float32Array(0)
      : readVectors(columns[plan.values]!, { dimension, bytesMax, issues });
  const named = plan.named.map(({ index, name, dimension: length }) => {
    const toRead = { name, dimension: length, bytesMax, issues, mayBeNull: true };
    const { validity } = columns[index]!;
    const presence = Uint8Array.from({ length: batch.rowCount }, (_, row) =>
      isValid(validity, row) ? 1 : 0,
    );
    return { name, dimension: length, presence, values: readVectors(columns[index]!, toRead) };
  });
  const ids =
    plan.id === null
      ? null
      : readIds(columns[plan.id]!, { idBytesMax: ID_BYTES_MAX, bytesMax, issues });
  const metadata = readMetadata({
    count: batch.rowCount,
    objects: plan.objects === null ? null : columns[plan.objects]!,
    members: plan.members.map((index) => columns[index]!),
    rowBytesMax: METADATA_BYTES_MAX,
    bytesMax,
    isNanNull,
    issues,
  });
  const first = issues.items.toSorted((a, b) => a.row - b.row)[0];
  if (first !== undefined) {
    const { expected, actual } = first;
    const detail =
      first.code === 'dimension_mismatch' && first.member === 'values'
        ? `found ${actual} values, expected ${expected} as in the previous rows`
        : first.detail + (first.detail.includes('found NaN') ? ` ${NAN_HINT}` : '');
    throw rowError(location(first.row), `${plan.names[first.member] ?? first.member}: ${detail}`);
  }
  return {
    rowCount: batch.rowCount,
    ids: ids === null ? undefined : textsOf(ids, batch.rowCount),
    values,
    dimension,
    named,
    metadata: metadata === null ? undefined : textsOf(metadata, batch.rowCount),
    location,
  };
}

const NAN_HINT = 'Store null instead with --nan null.';

/** Splits a record batch, which may have any number of rows, into batches of at most `rowsMax`. */
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
    };
  }
}

function textsOf({ offsets, bytes }: Utf8Column, count: number): string[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: count }, (_, row) =>
    buffer.toString('utf8', offsets[row], offsets[row + 1]),
  );
}

/** Adds the file's name to errors of the Arrow reader. */
async function readable<Value>(
  name: string,
  read: () => Promise<Value>,
  format = ARROW,
): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    if (!(cause instanceof SagittaError)) throw cause;
    if (cause.code !== 'invalid_arrow') throw new CliError(`${name}: ${cause.message}`, { cause });
    const reason = cause.message.replace(/\.$/, '').replace(/^Found /, 'found ');
    throw new CliError(`${name}: invalid ${format}: ${reason}`, { cause });
  }
}
