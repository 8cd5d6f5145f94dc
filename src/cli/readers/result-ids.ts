// The ids that a search found for each query, to be graded: text ids from NDJSON, CSV, Arrow and Parquet,
// numbers from the formats of vectors. A table has a row per match, with query_index and id, or a row per
// query, with a list of ids.

import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { RecordBatchReader } from 'apache-arrow';
import { parse } from 'csv-parse';
import { CliError } from '../failure.js';
import { linesOf } from './byte-stream.js';
import { FORMATS, formatOf, openVectors } from './formats.js';
import { show } from './row-batch.js';
import { type InputSource, openSource } from './source.js';

export interface ResultIds {
  /** A list of at most k ids per query, best first, in the order of the queries. */
  readonly lists: AsyncGenerator<readonly string[]>;
  /** Whether queries at the end may be missing, because they have no match and so no row. */
  readonly mayEndEarly: boolean;
}

/** Names of a column or member with the list of ids of a query. */
const LIST_NAMES = ['ids', 'neighbors'];
/** Rows read at a time. */
const ROWS_PER_BATCH = 500;

/** Throws CliError for a file that has no ids of results. */
export async function readResultIds(path: string, k: number): Promise<ResultIds> {
  const source = await openSource(path);
  const format = formatOf(source);
  if (!FORMATS[format].hasMetadata) return { lists: numberLists(path, k), mayEndEarly: false };
  if (format === 'ndjson') return { lists: cut(lineLists(source), k), mayEndEarly: false };
  const items = format === 'csv' ? csvItems(source) : arrowItems(source, format);
  return { lists: cut(listsOf(source.name, items), k), mayEndEarly: true };
}

/** A list of a query, or one match of the query with this index. */
type ResultItem = readonly string[] | { readonly query: number; readonly id: string };

async function* cut(
  lists: AsyncIterable<readonly string[]>,
  k: number,
): AsyncGenerator<readonly string[]> {
  for await (const ids of lists) yield ids.slice(0, k);
}

/** Gathers matches by query. A query without a match has an empty list. */
async function* listsOf(
  name: string,
  items: AsyncIterable<ResultItem>,
): AsyncGenerator<readonly string[]> {
  let query = 0;
  let ids: string[] = [];
  for await (const item of items) {
    if (!('query' in item)) {
      yield item;
      continue;
    }
    if (item.query < query) {
      throw new CliError(
        `${name}: found query_index ${item.query} after ${query}, expected rows in the order of the queries`,
      );
    }
    for (; query < item.query; query++) {
      yield ids;
      ids = [];
    }
    ids.push(item.id);
  }
  if (ids.length > 0) yield ids;
}

async function* lineLists(source: InputSource): AsyncGenerator<readonly string[]> {
  let line = 0;
  for await (const bytes of linesOf(source.name, source.chunks())) {
    line++;
    const text = Buffer.from(bytes).toString();
    if (text.trim() !== '') yield idsOfLine(`${source.name}:${line}`, text);
  }
}

/** `{"matches": [{"id": …}]}` as in replies, `{"ids": […]}`, or the list itself. */
function idsOfLine(location: string, text: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new CliError(`${location}: invalid JSON: ${(error as Error).message}`);
  }
  const members = (Array.isArray(value) ? { ids: value } : (value ?? {})) as Record<
    string,
    unknown
  >;
  const { matches } = members;
  const list = Array.isArray(matches)
    ? matches.map((match: { readonly id?: unknown }) => match.id)
    : LIST_NAMES.map((name) => members[name]).find(Array.isArray);
  if (list === undefined) {
    throw new CliError(`${location}: found ${show(value)}, expected matches, ids or a list of ids`);
  }
  return list.map((id) => {
    if (typeof id === 'string' || Number.isSafeInteger(id)) return String(id);
    throw new CliError(`${location}: found the id ${show(id)}, expected a string or an integer`);
  });
}

async function* csvItems(source: InputSource): AsyncGenerator<ResultItem> {
  const parser = parse({ columns: true, bom: true, skip_empty_lines: true });
  // Errors of the source reach the loop below: pipeline destroys the parser with them.
  pipeline(Readable.from(source.chunks()), parser, () => {});
  for await (const record of parser) {
    const { query_index: query, id } = record as Record<string, string | undefined>;
    if (query === undefined || id === undefined) throw noColumns(source.name, Object.keys(record));
    yield { query: Number(query), id };
  }
}

async function* arrowItems(source: InputSource, format: string): AsyncGenerator<ResultItem> {
  for await (const stream of arrowStreams(source, format)) {
    for await (const batch of await RecordBatchReader.from(stream)) {
      const lists = LIST_NAMES.map((name) => batch.getChild(name)).find((found) => found !== null);
      const queries = batch.getChild('query_index');
      const ids = batch.getChild('id');
      if (lists == null && (queries === null || ids === null)) {
        throw noColumns(
          source.name,
          batch.schema.fields.map((field) => field.name),
        );
      }
      for (let row = 0; row < batch.numRows; row++) {
        yield lists == null
          ? { query: Number(queries!.get(row)), id: String(ids!.get(row)) }
          : Array.from(lists.get(row) as Iterable<unknown>, String);
      }
    }
  }
}

/** Of Parquet one stream per row group. */
async function* arrowStreams(
  source: InputSource,
  format: string,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  if (format !== 'parquet') {
    yield source.path === undefined ? source.chunks() : createReadStream(source.path);
    return;
  }
  const { arrowStreamsOf } = await import('./parquet-rows.js');
  yield* arrowStreamsOf(source, ROWS_PER_BATCH);
}

function noColumns(name: string, found: readonly string[]): CliError {
  return new CliError(
    `${name}: found the columns ${found.join(', ')}; expected query_index and id, or ${LIST_NAMES.join(' or ')}`,
  );
}

/** Ids are read as float32, which represents integers below this exactly. */
const EXACT_ID_MAX = 2 ** 24;

/** The numbers of an ivecs file, or of the dataset `neighbors` of HDF5. */
async function* numberLists(path: string, k: number): AsyncGenerator<readonly string[]> {
  const { reader } = await openVectors(path, {
    dataset: 'neighbors',
    rowsPerBatch: ROWS_PER_BATCH,
  });
  for await (const { rowCount, dimension, values } of reader.batches(0)) {
    if (dimension < k) {
      throw new CliError(`${path}: found ${dimension} ids per query, but --top-k is ${k}`);
    }
    for (let row = 0; row < rowCount; row++) {
      const numbers = values.subarray(row * dimension, row * dimension + k);
      // Negative numbers mark missing matches.
      yield Array.from(
        numbers.filter((id) => id >= 0),
        (id) => idOfNumber(path, id),
      );
    }
  }
}

function idOfNumber(path: string, id: number): string {
  if (Number.isInteger(id) && id < EXACT_ID_MAX) return String(id);
  throw new CliError(`${path}: found the id ${id}, expected integers below ${EXACT_ID_MAX}`);
}
