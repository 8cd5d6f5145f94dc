// Rows from CSV with a line of names: the vector is one cell ("[0.1, 0.2]", "0.1 0.2", "0.1;0.2") or
// one column a dimension. Other columns become metadata: cells without quotes that are numbers, true
// or false in JSON's spelling are such, empty ones are null; what stands in quotes is text.

import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { CliError } from '../failure.js';
import {
  BatchBuilder,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
  VALUES_FIELDS,
} from './row-batch.js';
import type { InputSource } from './source.js';

const JSON_SCALAR = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false)$/;

interface CsvItem {
  readonly record: string[];
  /** The record as it stands in the file. */
  readonly raw: string;
  readonly info: { readonly lines: number };
}

interface Cells {
  readonly texts: readonly string[];
  /** Whether they stand in quotes; a hole where they do not. */
  readonly quoted: readonly (boolean | undefined)[];
}

interface Columns {
  readonly id: number | undefined;
  /** One cell that holds them all, or a column each. */
  readonly values: readonly number[];
  readonly hasValuesCell: boolean;
  readonly metadata: number | undefined;
  readonly fields: readonly { readonly key: string; readonly index: number }[];
}

export async function openCsv(source: InputSource, options: ReadOptions): Promise<RowReader> {
  return { rowCount: undefined, batches: (startRow) => readCsv(source, options, startRow) };
}

async function* readCsv(
  source: InputSource,
  options: ReadOptions,
  startRow: number,
): AsyncGenerator<RowBatch> {
  const { name } = source;
  const place = (line: number): string => `${name}:${line}`;
  const isTabbed = /\.(tsv|tab)(\.gz)?$/i.test(name);
  const delimiter = options.delimiter ?? (isTabbed ? '\t' : ',');
  const parser = parse({
    delimiter,
    bom: true,
    skip_empty_lines: true,
    info: true,
    max_record_size: 16_000_000,
    // Tells what stands in quotes; a callback for every cell costs ten times as much as the rest.
    raw: true,
  });
  // Errors of the source reach whoever reads the parser, which pipeline destroys with them.
  pipeline(Readable.from(source.chunks()), parser, () => {});
  const builder = new BatchBuilder(options.rowsPerBatch, place);
  let columns: Columns | undefined;
  let row = 0;
  try {
    for await (const item of parser) {
      const { record, raw, info } = item as CsvItem;
      if (columns === undefined) {
        columns = planColumns(name, record, options);
        continue;
      }
      if (row++ < startRow) continue;
      const quoted = columns.fields.length === 0 ? [] : quotedCells(raw, delimiter);
      const cells = { texts: record, quoted };
      const batch = builder.add(rowOf(place(info.lines), info.lines, cells, columns, options));
      if (batch !== undefined) yield batch;
    }
  } catch (error) {
    throw error instanceof CsvError ? tellOf(name, error) : error;
  }
  const rest = builder.take();
  if (rest !== undefined) yield rest;
}

/** Of a record that was parsed, so that every quote that opens is closed. */
function quotedCells(raw: string, delimiter: string): (boolean | undefined)[] {
  const quoted: (boolean | undefined)[] = [];
  if (!raw.includes('"')) return quoted;
  let at = 0;
  // Empty lines before a record belong to it.
  while (raw[at] === '\n' || raw[at] === '\r' || raw[at] === '\ufeff') at++;
  for (let cell = 0; at < raw.length; cell++) {
    if (raw[at] === '"') {
      quoted[cell] = true;
      // A quote within is written twice, and so ends the cell no more than it begins one.
      do at = raw.indexOf('"', at + 1) + 1;
      while (at > 0 && raw[at] === '"');
      if (at === 0) return quoted;
    }
    const next = raw.indexOf(delimiter, at);
    if (next === -1) return quoted;
    at = next + delimiter.length;
  }
  return quoted;
}

function tellOf(name: string, error: CsvError): CliError {
  const { lines, columns, record } = error as CsvError & {
    lines?: number;
    columns?: number;
    record?: unknown[];
  };
  if (error.code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH') {
    return new CliError(
      `${name}:${lines}: found ${record?.length} cells, expected as many as the first line has`,
      { cause: error },
    );
  }
  return new CliError(`${name}:${lines ?? columns ?? 1}: not CSV: ${error.message}`, {
    cause: error,
  });
}

function planColumns(name: string, names: readonly string[], options: ReadOptions): Columns {
  const twice = names.find((each, at) => names.indexOf(each) !== at);
  if (twice !== undefined) throw new CliError(`${name}:1: found the column ${show(twice)} twice`);
  const listed = names.length <= 12 ? names.join(', ') : `${names.slice(0, 12).join(', ')}, …`;
  const indexOf = (column: string, why = ''): number => {
    const index = names.indexOf(column);
    if (index !== -1) return index;
    throw new CliError(`${name}:1: found no column ${show(column)} among ${listed}${why}`);
  };
  const valuesName =
    options.valuesField ?? VALUES_FIELDS.find((each) => names.includes(each)) ?? 'values';
  const values = options.vectorColumns?.map((each) => indexOf(each)) ?? [
    indexOf(
      valuesName,
      '; --values-field names the column of vectors, --vector-columns those of their values',
    ),
  ];
  const idName = options.idField ?? (names.includes('id') ? 'id' : undefined);
  const id = idName === undefined ? undefined : indexOf(idName);
  const chosen = options.fields ?? names;
  const isTaken = (index: number): boolean => index === id || values.includes(index);
  const indexes = chosen.map((each) => indexOf(each)).filter((index) => !isTaken(index));
  return {
    id,
    values,
    hasValuesCell: options.vectorColumns === undefined,
    metadata: indexes.find((index) => names[index] === 'metadata'),
    fields: indexes
      .filter((index) => names[index] !== 'metadata')
      .map((index) => ({ key: `${JSON.stringify(names[index])}:`, index })),
  };
}

function rowOf(
  place: string,
  number: number,
  cells: Cells,
  columns: Columns,
  options: ReadOptions,
): { number: number; id: string | undefined; values: Float32Array; metadata: string } {
  const id = columns.id === undefined ? undefined : cells.texts[columns.id]!;
  if (id === '') throw rowError(place, `${options.idField ?? 'id'} is empty, expected an id`);
  const texts = columns.hasValuesCell
    ? splitVector(cells.texts[columns.values[0]!]!)
    : columns.values.map((index) => cells.texts[index]!);
  const values = new Float32Array(texts.length);
  for (let at = 0; at < values.length; at++) {
    const text = texts[at]!.trim();
    values[at] = text === '' ? Number.NaN : Number(text);
    if (Number.isFinite(values[at])) continue;
    throw rowError(place, `value ${at + 1} is ${show(text)}, expected a number within float32`);
  }
  return { number, id, values, metadata: metadataOf(place, cells, columns) };
}

/** `[0.1, 0.2]`, `0.1 0.2`, `0.1;0.2`, `{0.1,0.2}`. */
function splitVector(text: string): string[] {
  const inner = text.replace(/^\s*[[({]?\s*/, '').replace(/\s*[\])}]?\s*$/, '');
  return inner === '' ? [] : inner.split(/\s*[,;]\s*|\s+/);
}

function metadataOf(
  place: string,
  { texts, quoted }: Cells,
  { metadata, fields }: Columns,
): string {
  const further = fields
    .map(({ key, index }) => key + cellText(texts[index]!, quoted[index] === true))
    .join(',');
  const text = metadata === undefined ? '' : texts[metadata]!.trim();
  if (text === '') return `{${further}}`;
  const isObject = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {}
  if (!isObject(document)) {
    throw rowError(place, `metadata is ${show(text)}, expected a JSON object as text`);
  }
  if (further === '') return text;
  const twice = fields.find(({ key }) => JSON.parse(key.slice(0, -1)) in (document as object));
  if (twice !== undefined) {
    throw rowError(place, `found ${twice.key.slice(0, -1)} in metadata and as a column`);
  }
  const isEmpty = Object.keys(document as object).length === 0;
  return isEmpty ? `{${further}}` : `${text.slice(0, -1)},${further}}`;
}

function cellText(text: string, isQuoted: boolean): string {
  if (isQuoted) return JSON.stringify(text);
  if (text === '') return 'null';
  return JSON_SCALAR.test(text) ? text : JSON.stringify(text);
}
