// Rows from CSV with a header line. The vector is one cell ("[0.1, 0.2]", "0.1 0.2", "0.1;0.2") or one
// column per value. Other columns become metadata: unquoted cells that are JSON numbers, true or false
// keep their type, empty ones become null, quoted ones are text.

import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { VECTOR_NAMES } from '../../formats/arrow/column-choice.js';
import { CliError, usageError } from '../failure.js';
import { listNames, noSuchName } from '../names.js';
import {
  BatchBuilder,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
} from './row-batch.js';
import type { InputSource } from './source.js';
import { checkUtf8, textChunks } from './utf8.js';

const JSON_SCALAR = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false)$/;

interface CsvItem {
  readonly record: string[];
  /** The unparsed record. */
  readonly raw: string;
  readonly info: { readonly lines: number };
}

interface Cells {
  readonly texts: readonly string[];
  /** Whether a cell is quoted; undefined where it is not. */
  readonly quoted: readonly (boolean | undefined)[];
}

interface Columns {
  readonly id: number | undefined;
  /** The column of the whole vector, or one column per value. */
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
  const location = (line: number): string => `${name}:${line}`;
  const isTabbed = /\.(tsv|tab)(\.gz)?$/i.test(name);
  const delimiter = options.delimiter ?? (isTabbed ? '\t' : ',');
  const parser = parse({
    delimiter,
    skip_empty_lines: true,
    info: true,
    max_record_size: 16_000_000,
    // Needed to detect quotes; a callback per cell would cost ten times as much as the parsing.
    raw: true,
  });
  // Errors of the source reach the loop below: pipeline destroys the parser with them.
  pipeline(Readable.from(checkUtf8(name, textChunks(source))), parser, () => {});
  const builder = new BatchBuilder(options.rowsPerBatch, location);
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
      const batch = builder.add(rowOf(location(info.lines), info.lines, cells, columns, options));
      if (batch !== undefined) yield batch;
    }
  } catch (error) {
    throw error instanceof CsvError ? describeCsvError(name, error) : error;
  }
  const rest = builder.take();
  if (rest !== undefined) yield rest;
}

/** Which cells of a record are quoted. The record has been parsed, so every quote is closed. */
function quotedCells(raw: string, delimiter: string): (boolean | undefined)[] {
  const quoted: (boolean | undefined)[] = [];
  if (!raw.includes('"')) return quoted;
  let at = 0;
  // The raw record includes preceding empty lines.
  while (raw[at] === '\n' || raw[at] === '\r') at++;
  for (let cell = 0; at < raw.length; cell++) {
    if (raw[at] === '"') {
      quoted[cell] = true;
      // A doubled quote is an escaped quote and does not end the cell.
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

export function describeCsvError(name: string, error: CsvError): CliError {
  const { lines, columns, record } = error as CsvError & {
    lines?: number;
    columns?: number;
    record?: unknown[];
  };
  if (/^CSV_RECORD_INCONSISTENT_(FIELDS_LENGTH|COLUMNS)$/.test(error.code)) {
    return new CliError(
      `${name}:${lines}: found ${record?.length} cells, expected as many as in the header`,
      { cause: error },
    );
  }
  return new CliError(`${name}:${lines ?? columns ?? 1}: invalid CSV: ${error.message}`, {
    cause: error,
  });
}

function planColumns(name: string, names: readonly string[], options: ReadOptions): Columns {
  const duplicate = names.find((each, at) => names.indexOf(each) !== at);
  if (duplicate !== undefined) throw new CliError(`${name}:1: duplicate column ${show(duplicate)}`);
  const indexOf = (column: string, option: string): number => {
    const index = names.indexOf(column);
    if (index !== -1) return index;
    throw noSuchName(`${name}:1`, 'column', { name: column, option, names });
  };
  const values = options.vectorColumns?.map((each) => indexOf(each, '--vector-columns')) ?? [
    options.valuesField === undefined
      ? defaultVectorColumn(name, names)
      : indexOf(options.valuesField, '--values-field'),
  ];
  const idName = options.idField ?? (names.includes('id') ? 'id' : undefined);
  const id = idName === undefined ? undefined : indexOf(idName, '--id-field');
  const chosen = options.fields ?? names;
  const excluded = options.exclude?.map((each) => indexOf(each, '--exclude')) ?? [];
  const isTaken = (index: number): boolean =>
    index === id || values.includes(index) || excluded.includes(index);
  const indexes = chosen
    .map((each) => indexOf(each, '--fields'))
    .filter((index) => !isTaken(index));
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

function defaultVectorColumn(name: string, names: readonly string[]): number {
  const index = VECTOR_NAMES.map((each) => names.indexOf(each)).find((found) => found !== -1);
  if (index !== undefined) return index;
  throw usageError(
    `${name}:1: no column is named ${VECTOR_NAMES.join(', ')} (columns: ${listNames(names)}); name ` +
      'the vector column with --values-field, or the columns of its values with --vector-columns',
  );
}

function rowOf(
  location: string,
  number: number,
  cells: Cells,
  columns: Columns,
  options: ReadOptions,
): { number: number; id: string | undefined; values: Float32Array; metadata: string } {
  const id = columns.id === undefined ? undefined : cells.texts[columns.id]!;
  if (id === '') throw rowError(location, `${options.idField ?? 'id'} is empty`);
  const texts = columns.hasValuesCell
    ? splitVector(cells.texts[columns.values[0]!]!)
    : columns.values.map((index) => cells.texts[index]!);
  const values = new Float32Array(texts.length);
  for (let at = 0; at < values.length; at++) {
    const text = texts[at]!.trim();
    values[at] = text === '' ? Number.NaN : Number(text);
    if (Number.isFinite(values[at])) continue;
    throw rowError(location, `value ${at + 1} is ${show(text)}, expected a float32 number`);
  }
  return { number, id, values, metadata: metadataOf(location, cells, columns) };
}

/** `[0.1, 0.2]`, `0.1 0.2`, `0.1;0.2`, `{0.1,0.2}`. */
function splitVector(text: string): string[] {
  const inner = text.replace(/^\s*[[({]?\s*/, '').replace(/\s*[\])}]?\s*$/, '');
  return inner === '' ? [] : inner.split(/\s*[,;]\s*|\s+/);
}

function metadataOf(
  location: string,
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
    throw rowError(location, `metadata is ${show(text)}, expected a JSON object`);
  }
  if (further === '') return text;
  const duplicate = fields.find(({ key }) => JSON.parse(key.slice(0, -1)) in (document as object));
  if (duplicate !== undefined) {
    throw rowError(
      location,
      `${duplicate.key.slice(0, -1)} is both a member of metadata and a column`,
    );
  }
  const isEmpty = Object.keys(document as object).length === 0;
  return isEmpty ? `{${further}}` : `${text.slice(0, -1)},${further}}`;
}

function cellText(text: string, isQuoted: boolean): string {
  if (isQuoted) return JSON.stringify(text);
  if (text === '') return 'null';
  return JSON_SCALAR.test(text) ? text : JSON.stringify(text);
}
