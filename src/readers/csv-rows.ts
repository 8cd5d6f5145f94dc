// Reads rows from CSV with a header line. The vector is one cell ("[0.1, 0.2]", "0.1 0.2", "0.1;0.2") or one column per
// value. Other columns become metadata: unquoted JSON numbers, true and false keep their type, empty cells become null,
// quoted cells are text. Numbers have decimal points or, as an option, decimal commas; an ambiguous cell is refused
// rather than guessed. Columns `vectors.<name>` hold named vectors, and their cells may be empty.

import { CsvError, parse } from 'csv-parse/sync';
import { decodeUtf8, joinBytes } from '../common/bytes.js';
import { VECTOR_NAMES } from '../formats/arrow/column-choice.js';
import { ROW_BYTES_MAX } from './byte-stream.js';
import { floatsOfTexts, jsonOfText, type NumberStyle, numberStyle, vectorOfText } from './cells.js';
import type { InputSource } from './input-source.js';
import { mergedMetadata, withoutNan } from './metadata-text.js';
import { listNames, noSuchName } from './names.js';
import { ReadError, RowError, show } from './read-error.js';
import {
  indexColumns,
  type ReaderOptions,
  type TargetVectors,
  UNNAMED_ONLY,
} from './reader-options.js';
import {
  collectBatches,
  type FoundRow,
  type ParsedRow,
  type RowReader,
  type Sample,
  unsupportedVector,
} from './row-batch.js';
import { countNewlines, requireUtf8, textChunks, textHead } from './utf8.js';

export async function openCsv(source: InputSource, options: ReaderOptions): Promise<RowReader> {
  const { name } = source;
  const delimiter = delimiterOf(source, options);
  const location = (line: number): string => `${name}:${line}`;
  return {
    rowCount: undefined,
    batches: (startRow) =>
      collectBatches({ rows: rowsOf(source, delimiter, options), startRow, location }, options),
    sample: (rowCount) => sampleOf(source, delimiter, rowCount),
  };
}

async function* rowsOf(
  source: InputSource,
  delimiter: string,
  options: ReaderOptions,
): AsyncGenerator<FoundRow> {
  const { name } = source;
  const style = numberStyle(options, delimiter);
  let columns: Columns | undefined;
  for await (const record of recordsOf(source, delimiter)) {
    if (columns === undefined) {
      checkDelimiter(name, record.cells, delimiter);
      columns = planColumns(name, record.cells, options);
      continue;
    }
    const { line } = record;
    const plan = columns;
    yield { number: line, parse: () => parseRow(`${name}:${line}`, record, plan, style) };
  }
}

async function sampleOf(source: InputSource, delimiter: string, rowCount: number): Promise<Sample> {
  let columns: readonly string[] = [];
  const rows: Record<string, unknown>[] = [];
  for await (const { cells, line } of recordsOf(source, delimiter)) {
    if (columns.length === 0) {
      columns = cells;
      requireUnique(`${source.name}:${line}`, columns);
    } else if (cells.length === columns.length) {
      rows.push(Object.fromEntries(columns.map((name, at) => [name, cells[at]])));
    }
    if (rows.length === rowCount) break;
  }
  return { columns, rows };
}

/** Common delimiters and their spelling on the command line. */
const DELIMITERS: readonly (readonly [delimiter: string, spelling: string])[] = [
  [';', "';'"],
  ['\t', "'\\t'"],
  ['|', "'|'"],
  [',', ','],
];

function delimiterOf(source: InputSource, { delimiter }: ReaderOptions): string {
  const isTabbed = /\.(tsv|tab)(\.gz)?$/i.test(source.name);
  const usual = isTabbed ? '\t' : ',';
  if (delimiter !== 'detect') return delimiter ?? usual;
  const [header = ''] = decodeUtf8(textHead(source)).split('\n');
  const countOf = (each: string) => header.split(each).length;
  return DELIMITERS.reduce((best, [each]) => (countOf(each) > countOf(best) ? each : best), usual);
}

interface CsvRecord {
  readonly cells: readonly string[];
  readonly line: number;
  /** True for quoted cells, undefined for others. */
  quotedCells(): readonly (boolean | undefined)[];
}

/** The records that are not blank. Throws ReadError. */
export async function* recordsOf(
  source: InputSource,
  delimiter: string,
): AsyncGenerator<CsvRecord> {
  const { name } = source;
  let linesBefore = 0;
  for await (const block of blocksOf(name, textChunks(source))) {
    requireUtf8(name, block, linesBefore + 1);
    let recordEnd = 0;
    for (const { record: cells, info } of parseBlock(name, block, delimiter, linesBefore)) {
      const bytes = block.subarray(recordEnd, info.bytes);
      recordEnd = info.bytes;
      if (cells.length === 1 && cells[0]!.trim() === '') continue;
      yield {
        cells,
        line: linesBefore + info.lines,
        quotedCells: () => (bytes.includes(QUOTE) ? findQuotes(decodeUtf8(bytes), delimiter) : []),
      };
    }
    linesBefore += countNewlines(block);
  }
}

interface CsvItem {
  readonly record: readonly string[];
  /** Where the record ends in the block, in bytes and in lines. */
  readonly info: { readonly bytes: number; readonly lines: number };
}

function parseBlock(
  name: string,
  block: Uint8Array,
  delimiter: string,
  linesBefore: number,
): readonly CsvItem[] {
  try {
    return parse(block as Buffer, {
      delimiter,
      skip_empty_lines: true,
      info: true,
      relax_column_count: true,
    }) as unknown as readonly CsvItem[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { lines } = error as CsvError & { readonly lines?: number };
    // The message names a line within the block, not within the file.
    const reason = error.message.replace(/ (at|on) line \d+/, '');
    const line = linesBefore + (lines ?? 1);
    throw new ReadError(`${name}:${line}: invalid CSV: ${reason}`, { cause: error });
  }
}

const QUOTE = 0x22;
const NEWLINE = 0x0a;

/** Yields blocks that end at the end of a record: at a line feed outside quotes, or at the end of the file. */
async function* blocksOf(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let partBytes = 0;
  let isQuoted = false;
  for await (const chunk of chunks) {
    let end = 0;
    for (let at = 0; at < chunk.length; ) {
      const quote = chunk.indexOf(QUOTE, at);
      const stop = quote === -1 ? chunk.length : quote;
      const newline = isQuoted ? -1 : chunk.subarray(at, stop).lastIndexOf(NEWLINE);
      if (newline !== -1) end = at + newline + 1;
      // A doubled quote counts as the end of one quoted part and the beginning of the next.
      if (quote !== -1) isQuoted = !isQuoted;
      at = stop + 1;
    }
    if (end > 0) {
      yield joinBytes([...parts, chunk.subarray(0, end)]);
      parts = [];
      partBytes = 0;
    }
    if (end < chunk.length) parts.push(chunk.subarray(end));
    partBytes += chunk.length - end;
    if (partBytes > ROW_BYTES_MAX) {
      throw new ReadError(
        `${name}: found a record of more than ${ROW_BYTES_MAX} bytes; a quote may be missing`,
      );
    }
  }
  if (parts.length > 0) yield joinBytes(parts);
}

/** Which cells of a record are quoted. The record has been parsed, so every quote is closed. */
function findQuotes(raw: string, delimiter: string): (boolean | undefined)[] {
  const quoted: (boolean | undefined)[] = [];
  let at = 0;
  // The record includes preceding empty lines.
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

/** Throws ReadError for a header of one column that a different delimiter would split. */
function checkDelimiter(name: string, names: readonly string[], delimiter: string): void {
  const [only] = names;
  if (names.length > 1 || only === undefined) return;
  const other = DELIMITERS.find(([each]) => each !== delimiter && only.includes(each));
  if (other === undefined) return;
  throw new ReadError(
    `${name}:1: found the single column ${show(only)}, expected several with ${show(delimiter)} between them`,
    { advice: `; if another character separates them, use --delimiter ${other[1]}`, isUsage: true },
  );
}

interface Columns {
  readonly count: number;
  /** Undefined for rows without ids. */
  readonly id: { readonly name: string; readonly index: number } | undefined;
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
  readonly fields: readonly { readonly name: string; readonly index: number }[];
}

function requireUnique(location: string, names: readonly string[]): void {
  const duplicate = names.find((each, at) => names.indexOf(each) !== at);
  if (duplicate === undefined) return;
  throw new ReadError(`${location}: duplicate column ${show(duplicate)}`);
}

function planColumns(name: string, names: readonly string[], options: ReaderOptions): Columns {
  requireUnique(`${name}:1`, names);
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
  const { idField } = options;
  const idName = idField === undefined && names.includes('id') ? 'id' : (idField ?? undefined);
  const id =
    idName === undefined ? undefined : { name: idName, index: indexOf(idName, '--id-field') };
  const chosen = options.fields ?? names;
  const unnamed = options.fields === undefined ? indexColumns(names) : new Set<number>();
  const excluded = options.exclude?.map((each) => indexOf(each, '--exclude')) ?? [];
  const isTaken = (index: number): boolean =>
    index === id?.index ||
    values.includes(index) ||
    excluded.includes(index) ||
    named.some((vector) => vector.index === index);
  if (options.fields === undefined) {
    const other = names.find((each, index) => /^(sparse_)?vectors\./.test(each) && !isTaken(index));
    if (other !== undefined) throw unsupportedVector(`${name}:1`, other);
  }
  const indexes = chosen
    .map((each) => indexOf(each, '--fields'))
    .filter((index) => !isTaken(index) && !(options.withoutIndex && unnamed.has(index)));
  if (unnamed.size > 0) {
    options.onIndex?.(indexes.filter((at) => unnamed.has(at)).map((at) => names[at]!));
  }
  return {
    count: names.length,
    id,
    values,
    hasValuesCell: several === undefined && values.length > 0,
    named,
    metadata: indexes.find((index) => names[index] === 'metadata'),
    fields: indexes
      .filter((index) => names[index] !== 'metadata')
      .map((index) => ({ name: names[index]!, index })),
  };
}

function defaultVectorColumn(
  name: string,
  names: readonly string[],
  { hasUnnamed, isPatch = false }: TargetVectors,
): number | undefined {
  const index = VECTOR_NAMES.map((each) => names.indexOf(each)).find((found) => found !== -1);
  if (index !== undefined || !hasUnnamed || isPatch) return index;
  throw new ReadError(
    `${name}:1: no column is named ${VECTOR_NAMES.join(', ')} (columns: ${listNames(names)}); name ` +
      'the vector column with --values-field, or the columns of its values with --vector-columns',
    { isUsage: true },
  );
}

function parseRow(
  location: string,
  record: CsvRecord,
  columns: Columns,
  style: NumberStyle,
): ParsedRow {
  const { cells } = record;
  const { id, values, hasValuesCell } = columns;
  if (cells.length !== columns.count) {
    throw new RowError(
      location,
      `found ${cells.length} cells, expected ${columns.count} as in the header`,
    );
  }
  if (id !== undefined && cells[id.index] === '') {
    throw new RowError(location, `${id.name} is empty`);
  }
  return {
    id: id && cells[id.index]!,
    values: hasValuesCell
      ? vectorOfText(location, cells[values[0]!]!, style)
      : floatsOfTexts(
          location,
          values.map((index) => cells[index]!),
          style,
        ),
    vectors: namedOf(location, cells, columns, style),
    metadata: metadataOf(location, record, columns, style),
  };
}

function namedOf(
  location: string,
  cells: readonly string[],
  { named }: Columns,
  style: NumberStyle,
): ReadonlyMap<string, Float32Array> {
  const vectors = new Map<string, Float32Array>();
  for (const { name, dimension, index } of named) {
    const text = cells[index]!.trim();
    if (text === '') continue;
    const values = vectorOfText(location, text, style);
    if (values.length !== dimension) {
      throw new RowError(
        location,
        `vectors.${name} has ${values.length} values, expected ${dimension}`,
      );
    }
    vectors.set(name, values);
  }
  return vectors;
}

function metadataOf(
  location: string,
  record: CsvRecord,
  { metadata, fields }: Columns,
  style: NumberStyle,
): string {
  const { cells } = record;
  // Asking the parser about each cell through its callback would double the time of parsing.
  const quoted = fields.length === 0 ? [] : record.quotedCells();
  const members = fields.map(({ name, index }) => ({
    name,
    text: jsonOfText(cells[index]!, quoted[index] === true, style),
  }));
  const object = metadata === undefined ? '' : cells[metadata]!.trim();
  return mergedMetadata(location, style.isNanNull ? withoutNan(object) : object, members);
}
