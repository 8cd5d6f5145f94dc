// The ids that a search found for each query, to be graded: text ids from NDJSON, CSV, Arrow and Parquet,
// numbers from the formats of vectors. A table has a row per match, with query_index and id, or a row per
// query, with a list of ids.

import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { RecordBatchReader } from 'apache-arrow';
import { CsvError, parse } from 'csv-parse';
import { CliError } from '../failure.js';
import { linesOf } from './byte-stream.js';
import { describeCsvError } from './csv-rows.js';
import { FORMATS, formatOf, openVectors } from './formats.js';
import { rowError, show } from './row-batch.js';
import { type InputSource, openSource } from './source.js';
import { checkUtf8, createLineDecoder, textChunks } from './utf8.js';

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
  if (!FORMATS[format].hasMetadata) return { lists: numberLists(source, k), mayEndEarly: false };
  if (format === 'ndjson') return { lists: cut(lineLists(source), k), mayEndEarly: false };
  const items = format === 'csv' ? csvItems(source) : arrowItems(source, format);
  return { lists: cut(listsOf(items), k), mayEndEarly: true };
}

/** One match of the query with this index. */
interface ResultMatch {
  readonly location: string;
  readonly query: number;
  readonly id: string;
  /** Undefined where the table has no ranks. */
  readonly rank: number | undefined;
}
/** A list of a query, or a match. */
type ResultItem = readonly string[] | ResultMatch;

async function* cut(
  lists: AsyncIterable<readonly string[]>,
  k: number,
): AsyncGenerator<readonly string[]> {
  for await (const ids of lists) yield ids.slice(0, k);
}

/** Before the first rank, which may be 0. */
const RANK_BEFORE = -1;

/** Gathers matches by query. A query without a match has an empty list. */
async function* listsOf(items: AsyncIterable<ResultItem>): AsyncGenerator<readonly string[]> {
  let query = 0;
  let rank = RANK_BEFORE;
  let ids: string[] = [];
  for await (const item of items) {
    if (!('query' in item)) {
      yield item;
      continue;
    }
    if (item.query < query) {
      throw rowError(
        item.location,
        `found query_index ${item.query} after ${query}, expected rows in the order of the queries`,
      );
    }
    for (; query < item.query; query++) {
      yield ids;
      ids = [];
      rank = RANK_BEFORE;
    }
    if (item.rank !== undefined && item.rank <= rank) {
      throw rowError(
        item.location,
        `found rank ${item.rank} after an equal or later one, expected the matches of a query best first`,
      );
    }
    rank = item.rank ?? rank;
    ids.push(item.id);
  }
  if (ids.length > 0) yield ids;
}

async function* lineLists(source: InputSource): AsyncGenerator<readonly string[]> {
  const decode = createLineDecoder();
  let query = 0;
  let line = 0;
  for await (const bytes of linesOf(source.name, textChunks(source))) {
    line++;
    const location = `${source.name}:${line}`;
    const text = decode(location, bytes);
    if (text.trim() !== '') yield idsOfLine(location, text, query++);
  }
}

/** `{"matches": [{"id": …}]}` as in replies, `{"ids": […]}`, or the list itself. */
function idsOfLine(location: string, text: string, query: number): readonly string[] {
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
  const { matches, query_index: index = query } = members;
  if (index !== query) {
    throw rowError(
      location,
      `found query_index ${show(index)}, expected ${query}: a line per query, in their order`,
    );
  }
  const list = Array.isArray(matches)
    ? matches.map((match: { readonly id?: unknown } | null) => match?.id)
    : LIST_NAMES.map((name) => members[name]).find(Array.isArray);
  if (list === undefined) {
    throw rowError(location, `found ${show(value)}, expected matches, ids or a list of ids`);
  }
  return list.map((id) => idOf(location, id));
}

/** Text, or an integer of JSON or Arrow. */
function idOf(location: string, value: unknown): string {
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  if ((typeof value === 'string' && value !== '') || isInteger) return String(value);
  throw rowError(location, `found the id ${show(value)}, expected a text or an integer`);
}

/** A query_index or a rank. */
function countOf(location: string, name: string, value: unknown): number {
  const count = value === null || value === '' ? Number.NaN : Number(value);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw rowError(location, `found the ${name} ${show(value)}, expected an integer from 0`);
}

function matchOf(
  location: string,
  { query, id, rank }: { query: unknown; id: unknown; rank: unknown },
): ResultMatch {
  return {
    location,
    query: countOf(location, 'query_index', query),
    id: idOf(location, id),
    rank: rank === undefined ? undefined : countOf(location, 'rank', rank),
  };
}

async function* csvItems(source: InputSource): AsyncGenerator<ResultItem> {
  const { name } = source;
  const parser = parse({ columns: true, skip_empty_lines: true, info: true });
  // Errors of the source reach the loop below: pipeline destroys the parser with them.
  pipeline(Readable.from(checkUtf8(name, textChunks(source))), parser, () => {});
  try {
    for await (const item of parser) {
      const { record, info } = item as CsvItem;
      const { query_index: query, id, rank } = record;
      if (query === undefined || id === undefined) throw noColumns(name, Object.keys(record), []);
      yield matchOf(`${name}:${info.lines}`, { query, id, rank });
    }
  } catch (error) {
    throw error instanceof CsvError ? describeCsvError(name, error) : error;
  }
}

interface CsvItem {
  readonly record: Readonly<Record<string, string | undefined>>;
  readonly info: { readonly lines: number };
}

async function* arrowItems(source: InputSource, format: string): AsyncGenerator<ResultItem> {
  const { name } = source;
  let rowCount = 0;
  for await (const stream of arrowStreams(source, format)) {
    for await (const batch of await RecordBatchReader.from(stream)) {
      const lists = LIST_NAMES.map((each) => batch.getChild(each)).find((found) => found !== null);
      const [queries, ids, ranks] = ['query_index', 'id', 'rank'].map((each) =>
        batch.getChild(each),
      );
      if (lists == null && (queries == null || ids == null)) {
        const found = batch.schema.fields.map((field) => field.name);
        throw noColumns(name, found, LIST_NAMES);
      }
      for (let row = 0; row < batch.numRows; row++) {
        const location = `${name}, row ${++rowCount}`;
        if (lists == null) {
          const query = queries!.get(row);
          yield matchOf(location, { query, id: ids!.get(row), rank: ranks?.get(row) });
        } else {
          const list = lists.get(row) as Iterable<unknown> | null;
          yield Array.from(list ?? [], (id) => idOf(location, id));
        }
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

function noColumns(name: string, found: readonly string[], listNames: readonly string[]): CliError {
  const expected = ['query_index and id', ...listNames].join(', or ');
  return new CliError(`${name}: found the columns ${found.join(', ')}; expected ${expected}`);
}

/** Ids are read as float32, which represents integers below this exactly. */
const EXACT_ID_MAX = 2 ** 24;

/** The numbers of an ivecs file, or of the dataset `neighbors` of HDF5. */
async function* numberLists(source: InputSource, k: number): AsyncGenerator<readonly string[]> {
  const path = source.name;
  const reader = await openVectors(source, {
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
