// Rows from CSV with a header line. The vector is one cell ("[0.1, 0.2]", "0.1 0.2", "0.1;0.2") or one
// column per value. Other columns become metadata: unquoted cells that are JSON numbers, true or false
// keep their type, empty ones become null, quoted ones are text. Numbers have decimal points, or decimal
// commas if the options say so: a cell that fits both is refused instead of guessed. Columns `vectors.<name>` are
// those of named vectors, whose cells may be empty.

import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { splitNumbers } from '../../common/number-list.js';
import { VECTOR_NAMES } from '../../formats/arrow/column-choice.js';
import { CliError, usageError } from '../failure.js';
import { listNames, noSuchName } from '../names.js';
import { withoutNan } from './ndjson-rows.js';
import {
  BatchBuilder,
  indexColumns,
  otherVector,
  type ReadOptions,
  type RowBatch,
  type RowReader,
  rowError,
  show,
  type TargetVectors,
  UNNAMED_ONLY,
} from './row-batch.js';
import type { InputSource } from './source.js';
import { checkUtf8, textChunks } from './utf8.js';

const JSON_SCALAR = /^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false)$/;
const COMMA_DECIMAL = /^-?(0|[1-9]\d*),\d+([eE][+-]?\d+)?$/;

const NAN = /^nan$/i;

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
  /** The columns of named vectors, with the dimensions that the collection gives them. */
  readonly named: readonly {
    readonly name: string;
    readonly dimension: number;
    readonly index: number;
  }[];
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
  const numbers = numbersOf(options, delimiter);
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
  const builder = new BatchBuilder(options.rowsPerBatch, location, options.vectors);
  let columns: Columns | undefined;
  let row = 0;
  try {
    for await (const item of parser) {
      const { record, raw, info } = item as CsvItem;
      if (columns === undefined) {
        checkDelimiter(name, record, delimiter);
        columns = planColumns(name, record, options);
        continue;
      }
      if (row++ < startRow) continue;
      const quoted = columns.fields.length === 0 ? [] : quotedCells(raw, delimiter);
      const cells = { texts: record, quoted };
      const parsed = rowOf(location(info.lines), cells, columns, numbers, options);
      const batch = builder.add({ number: info.lines, ...parsed });
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

/** How the options spell a delimiter, and other ones that files have. */
const DELIMITERS: readonly (readonly [string, string])[] = [
  [';', "';'"],
  ['\t', "'\\t'"],
  ['|', "'|'"],
  [',', ','],
];

/** Throws CliError for a header of one column that another delimiter makes several. */
function checkDelimiter(name: string, names: readonly string[], delimiter: string): void {
  const [only] = names;
  if (names.length > 1 || only === undefined) return;
  const other = DELIMITERS.find(([each]) => each !== delimiter && only.includes(each));
  if (other === undefined) return;
  throw usageError(
    `${name}:1: found the single column ${show(only)}, expected several with ${show(delimiter)} between ` +
      `them; if another character separates them, use --delimiter ${other[1]}`,
  );
}

function planColumns(name: string, names: readonly string[], options: ReadOptions): Columns {
  const duplicate = names.find((each, at) => names.indexOf(each) !== at);
  if (duplicate !== undefined) throw new CliError(`${name}:1: duplicate column ${show(duplicate)}`);
  const indexOf = (column: string, option: string): number => {
    const index = names.indexOf(column);
    if (index !== -1) return index;
    throw noSuchName(`${name}:1`, 'column', { name: column, option, names });
  };
  const vectors = options.vectors ?? UNNAMED_ONLY;
  const several = options.vectorColumns?.map((each) => indexOf(each, '--vector-columns'));
  const valuesCell = (): number | undefined =>
    options.valuesField === undefined
      ? defaultVectorColumn(name, names, vectors)
      : indexOf(options.valuesField, '--values-field');
  const values = several ?? [valuesCell()].filter((index) => index !== undefined);
  const named = [...vectors.named].flatMap(([vectorName, dimension]) => {
    const index = names.indexOf(`vectors.${vectorName}`);
    return index === -1 ? [] : [{ name: vectorName, dimension, index }];
  });
  const idName = options.idField ?? (names.includes('id') ? 'id' : undefined);
  const id = idName === undefined ? undefined : indexOf(idName, '--id-field');
  const chosen = options.fields ?? names;
  const unnamed = options.fields === undefined ? indexColumns(names) : new Set<number>();
  const excluded = options.exclude?.map((each) => indexOf(each, '--exclude')) ?? [];
  const isTaken = (index: number): boolean =>
    index === id ||
    values.includes(index) ||
    excluded.includes(index) ||
    named.some((vector) => vector.index === index);
  if (options.fields === undefined) {
    const other = names.find((each, index) => /^(sparse_)?vectors\./.test(each) && !isTaken(index));
    if (other !== undefined) throw otherVector(`${name}:1`, other);
  }
  const indexes = chosen
    .map((each) => indexOf(each, '--fields'))
    .filter((index) => !isTaken(index) && !(options.withoutIndex && unnamed.has(index)));
  if (unnamed.size > 0) {
    options.onIndex?.(indexes.filter((at) => unnamed.has(at)).map((at) => names[at]!));
  }
  return {
    id,
    values,
    hasValuesCell: several === undefined && values.length > 0,
    named,
    metadata: indexes.find((index) => names[index] === 'metadata'),
    fields: indexes
      .filter((index) => names[index] !== 'metadata')
      .map((index) => ({ key: `${JSON.stringify(names[index])}:`, index })),
  };
}

function defaultVectorColumn(
  name: string,
  names: readonly string[],
  { hasUnnamed, isPatch = false }: TargetVectors,
): number | undefined {
  const index = VECTOR_NAMES.map((each) => names.indexOf(each)).find((found) => found !== -1);
  if (index !== undefined || !hasUnnamed || isPatch) return index;
  throw usageError(
    `${name}:1: no column is named ${VECTOR_NAMES.join(', ')} (columns: ${listNames(names)}); name ` +
      'the vector column with --values-field, or the columns of its values with --vector-columns',
  );
}

/** How the numbers of a file are written. */
interface NumberStyle {
  readonly hasDecimalCommas: boolean;
  readonly isNanNull: boolean;
  /** Whether a quoted cell may be a number: a decimal comma has to be quoted between commas. */
  readonly mayBeQuoted: boolean;
}

function numbersOf({ decimal, isNanNull = false }: ReadOptions, delimiter: string): NumberStyle {
  const hasDecimalCommas = decimal === ',';
  return { hasDecimalCommas, isNanNull, mayBeQuoted: hasDecimalCommas && delimiter === ',' };
}

function rowOf(
  location: string,
  cells: Cells,
  columns: Columns,
  numbers: NumberStyle,
  options: ReadOptions,
): {
  id: string | undefined;
  values: Float32Array;
  vectors: ReadonlyMap<string, Float32Array>;
  metadata: string;
} {
  const id = columns.id === undefined ? undefined : cells.texts[columns.id]!;
  if (id === '') throw rowError(location, `${options.idField ?? 'id'} is empty`);
  const texts = columns.hasValuesCell
    ? splitVector(location, cells.texts[columns.values[0]!]!, numbers)
    : columns.values.map((index) => cells.texts[index]!);
  return {
    id,
    values: floatsOf(location, texts, numbers),
    vectors: namedOf(location, cells, columns, numbers),
    metadata: metadataOf(location, cells, columns, numbers),
  };
}

function floatsOf(location: string, texts: readonly string[], numbers: NumberStyle): Float32Array {
  const values = new Float32Array(texts.length);
  for (let at = 0; at < values.length; at++) {
    values[at] = numberOf(texts[at]!.trim(), numbers);
    if (!Number.isFinite(values[at])) throw notNumber(location, at, texts[at]!.trim(), numbers);
  }
  return values;
}

function namedOf(
  location: string,
  cells: Cells,
  { named }: Columns,
  numbers: NumberStyle,
): ReadonlyMap<string, Float32Array> {
  const vectors = new Map<string, Float32Array>();
  for (const { name, dimension, index } of named) {
    const text = cells.texts[index]!.trim();
    if (text === '') continue;
    const texts = splitVector(location, text, numbers);
    if (texts.length !== dimension) {
      throw rowError(location, `vectors.${name} has ${texts.length} values, expected ${dimension}`);
    }
    vectors.set(name, floatsOf(location, texts, numbers));
  }
  return vectors;
}

/** NaN for other text. */
function numberOf(text: string, { hasDecimalCommas }: NumberStyle): number {
  if (text === '') return Number.NaN;
  if (!hasDecimalCommas) return Number(text);
  // A point separates thousands where commas are decimal, so it is refused rather than guessed.
  return text.includes('.') ? Number.NaN : Number(text.replace(',', '.'));
}

function notNumber(location: string, at: number, text: string, numbers: NumberStyle): CliError {
  const { hasDecimalCommas } = numbers;
  const style = hasDecimalCommas ? ' with a decimal comma, as --decimal says' : '';
  const isOther =
    !hasDecimalCommas && Number.isFinite(numberOf(text, { ...numbers, hasDecimalCommas: true }));
  const hint = isOther ? `; ${DECIMAL_HINT}` : '';
  return rowError(
    location,
    `value ${at + 1} is ${show(text)}, expected a float32 number${style}${hint}`,
  );
}

const DECIMAL_HINT = 'if commas are decimal, use --decimal ,';

function splitVector(
  location: string,
  text: string,
  { hasDecimalCommas }: NumberStyle,
): readonly string[] {
  const { texts, separators } = splitNumbers(text, hasDecimalCommas);
  if (separators.length <= 1) return texts;
  const found = separators.map((each) => show(each)).join(' and ');
  throw rowError(
    location,
    `found ${found} between the values of ${show(text)}, expected one separator` +
      (hasDecimalCommas ? ' and decimal commas' : `; ${DECIMAL_HINT}`),
  );
}

function metadataOf(
  location: string,
  { texts, quoted }: Cells,
  { metadata, fields }: Columns,
  numbers: NumberStyle,
): string {
  const further = fields
    .map(({ key, index }) => key + cellText(texts[index]!, quoted[index] === true, numbers))
    .join(',');
  const cell = metadata === undefined ? '' : texts[metadata]!.trim();
  const text = numbers.isNanNull ? withoutNan(cell) : cell;
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

function cellText(text: string, isQuoted: boolean, numbers: NumberStyle): string {
  const { hasDecimalCommas, isNanNull, mayBeQuoted } = numbers;
  if (hasDecimalCommas && (!isQuoted || mayBeQuoted) && COMMA_DECIMAL.test(text)) {
    return text.replace(',', '.');
  }
  if (isQuoted) return JSON.stringify(text);
  if (text === '' || (isNanNull && NAN.test(text))) return 'null';
  // Where commas are decimal, a point separates thousands, perhaps.
  if (hasDecimalCommas && text.includes('.')) return JSON.stringify(text);
  return JSON_SCALAR.test(text) ? text : JSON.stringify(text);
}
