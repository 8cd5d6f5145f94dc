// Rows from Arrow IPC, as a file or as a stream: a column of ids, a column of lists of numbers, and
// further columns, which become metadata. Batches are read one after another, never the whole file.

import { open } from 'node:fs/promises';
import { DataType, type Field, RecordBatchReader, type Schema, type Vector } from 'apache-arrow';
import { cellText, isCellType } from './arrow-cell.js';
import { CliError } from './failure.js';
import {
  type ImportRow,
  makeRow,
  type RowFields,
  rowError,
  show,
  toFloat32,
} from './import-row.js';

/** A file is read where its batches are; a stream as it comes. */
export type ArrowSource =
  | { readonly kind: 'file'; readonly path: string; onProgress(share: number): void }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<Uint8Array> };

export async function* readArrowRows(
  name: string,
  source: ArrowSource,
  fields: RowFields,
): AsyncGenerator<ImportRow> {
  const handle = source.kind === 'file' ? await open(source.path) : undefined;
  try {
    const reader = await readable(name, async () => {
      const opened = await (source.kind === 'file'
        ? RecordBatchReader.from(handle!)
        : RecordBatchReader.from(source.chunks));
      return await opened.open();
    });
    const plan = planColumns(name, reader.schema, fields);
    const batchCount = 'numRecordBatches' in reader ? Number(reader.numRecordBatches) : 0;
    const batches = reader[Symbol.asyncIterator]();
    let rowNumber = 0;
    for (let batchNumber = 0; ; batchNumber++) {
      const next = await readable(name, async () => await batches.next());
      if (next.done) break;
      const columns = columnsOf(plan, (index) => next.value.getChildAt(index));
      const { numRows } = next.value;
      for (let row = 0; row < numRows; row++) {
        rowNumber++;
        yield rowAt(`${name}, row ${rowNumber}`, columns, row, fields);
        if (source.kind === 'file') {
          source.onProgress((batchNumber + (row + 1) / numRows) / batchCount);
        }
      }
    }
  } finally {
    await handle?.close();
  }
}

/** Indexes of the columns in the schema. */
interface ColumnPlan {
  readonly id: number | undefined;
  readonly values: number;
  readonly metadata: readonly { readonly name: string; readonly index: number }[];
  /** Whether the one metadata column holds the whole object as JSON text. */
  readonly isMetadataText: boolean;
}

interface BatchColumns {
  readonly id: Vector | undefined;
  readonly values: Vector;
  readonly metadata: readonly { readonly key: string; readonly column: Vector }[];
  readonly isMetadataText: boolean;
}

function planColumns(name: string, schema: Schema, fields: RowFields): ColumnPlan {
  const names = schema.fields.map((field) => field.name);
  const indexOf = (field: string): number | undefined => {
    const index = names.indexOf(field);
    return index === -1 ? undefined : index;
  };
  const id = indexOf(fields.idField);
  if (id === undefined && fields.isIdRequired) {
    throw new CliError(
      `${name}: found no column ${show(fields.idField)} among ${names.join(', ')}`,
    );
  }
  const values = indexOf(fields.valuesField);
  if (values === undefined) {
    throw new CliError(
      `${name}: found no column ${show(fields.valuesField)} among ${names.join(', ')}; ` +
        '--values-field names the column of vectors',
    );
  }
  checkValuesType(name, schema.fields[values]!);

  const metadataNames =
    fields.metadataFields ?? names.filter((_, index) => index !== id && index !== values);
  const metadata = metadataNames.map((field) => {
    const index = indexOf(field);
    if (index !== undefined) return { name: field, index };
    throw new CliError(`${name}: found no column ${show(field)} among ${names.join(', ')}`);
  });
  const text = metadata.find(
    (column) => column.name === 'metadata' && DataType.isUtf8(schema.fields[column.index]!.type),
  );
  if (text !== undefined && metadata.length > 1) {
    throw new CliError(
      `${name}: found the column metadata beside ${metadata.length - 1} further ones; say with ` +
        '--fields metadata that it holds all of the metadata as JSON, or name the others',
    );
  }
  for (const { index } of metadata) {
    const { name: field, type } = schema.fields[index]!;
    if (isCellType(type)) continue;
    throw new CliError(
      `${name}: the column ${show(field)} has the type ${type}, which metadata cannot hold; ` +
        '--fields names the columns to take',
    );
  }
  return { id, values, metadata, isMetadataText: text !== undefined };
}

function checkValuesType(name: string, { name: field, type }: Field): void {
  const isList = DataType.isFixedSizeList(type) || DataType.isList(type);
  if (isList && DataType.isFloat(type.children[0]!.type)) return;
  throw new CliError(
    `${name}: the column ${show(field)} has the type ${type}, ` +
      'expected lists of floating-point numbers',
  );
}

function columnsOf(plan: ColumnPlan, column: (index: number) => Vector | null): BatchColumns {
  return {
    id: plan.id === undefined ? undefined : column(plan.id)!,
    values: column(plan.values)!,
    metadata: plan.metadata.map(({ name, index }) => ({
      key: `${JSON.stringify(name)}:`,
      column: column(index)!,
    })),
    isMetadataText: plan.isMetadataText,
  };
}

function rowAt(
  place: string,
  columns: BatchColumns,
  row: number,
  { idField, valuesField }: RowFields,
): ImportRow {
  const id = columns.id === undefined ? undefined : idText(place, idField, columns.id.get(row));
  const list = columns.values.get(row) as Vector | null;
  if (list === null || list.nullCount > 0) {
    throw rowError(place, `${valuesField} is null or holds null, expected numbers`);
  }
  const numbers = DataType.isFloat(list.type) && list.type.precision === 1 ? list : [...list];
  const values = toFloat32(place, valuesField, numbersOf(numbers));
  const metadata = columns.metadata.map(
    ({ key, column }) => key + cellText(place, key.slice(0, -1), column.type, column.get(row)),
  );
  return makeRow(
    place,
    id,
    values,
    columns.isMetadataText
      ? metadataText(place, columns.metadata[0]!.column.get(row))
      : `{${metadata.join(',')}}`,
  );
}

function numbersOf(list: Vector | unknown[]): ArrayLike<unknown> {
  return Array.isArray(list) ? list : (list.toArray() as Float32Array);
}

function idText(place: string, field: string, id: unknown): string {
  if (typeof id === 'string') return id;
  if (typeof id === 'bigint' || Number.isSafeInteger(id)) return String(id);
  throw rowError(place, `${field} is ${show(id)}, expected a string or a whole number`);
}

function metadataText(place: string, text: unknown): string {
  if (text === null) return '{}';
  try {
    const value: unknown = JSON.parse(text as string);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return text as string;
  } catch {}
  throw rowError(place, `metadata is ${show(text)}, expected a JSON object as text`);
}

/** What apache-arrow throws says little of the file. */
async function readable<Value>(name: string, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const hint = /compress|codec/i.test(reason) ? '; write it without compression' : '';
    throw new CliError(`${name}: cannot be read as Arrow IPC: ${reason}${hint}`, { cause });
  }
}
