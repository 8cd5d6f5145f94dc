// Reads the ids that a search found for each query, to measure their recall: string ids from NDJSON, CSV, Arrow and
// Parquet, integers from vector files. A table has a row per match, with query_index and id, or a row per query, with a
// list of ids.

import { RecordBatchReader } from 'apache-arrow';
import { linesOf } from '../../readers/byte-stream.js';
import { recordsOf } from '../../readers/csv-rows.js';
import { formatOf, INPUT_FORMATS, openVectors } from '../../readers/formats.js';
import type { InputSource } from '../../readers/input-source.js';
import { ReadError, RowError, show } from '../../readers/read-error.js';
import { createLineDecoder, textChunks } from '../../readers/utf8.js';
import { openInput } from './file-source.js';

export interface ResultIds {
  /** At most k ids per query, best first, in the order of the queries. */
  readonly lists: AsyncGenerator<readonly string[]>;
  /** Whether the last queries may be missing, because a query without a match has no row. */
  readonly mayEndEarly: boolean;
}

/** Names of the column or member that holds the ids of a query. */
const LIST_NAMES = ['ids', 'neighbors'];
/** Rows read at a time. */
const ROWS_PER_BATCH = 500;

/** Throws ReadError for a file that holds no result ids. */
export async function readResultIds(path: string, k: number): Promise<ResultIds> {
  const source = await openInput(path);
  const format = formatOf(source);
  if (!INPUT_FORMATS[format].hasMetadata)
    return { lists: numberLists(source, k), mayEndEarly: false };
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
/** All ids of a query, or one match. */
type ResultItem = readonly string[] | ResultMatch;

async function* cut(
  lists: AsyncIterable<readonly string[]>,
  k: number,
): AsyncGenerator<readonly string[]> {
  for await (const ids of lists) yield ids.slice(0, k);
}

/** Lower than any rank; the first rank may be 0. */
const RANK_BEFORE = -1;

/** Groups matches by query. A query without a match has an empty list. */
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
      throw new RowError(
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
      throw new RowError(
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
  for await (const { bytes, line } of linesOf(source.name, textChunks(source))) {
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
    throw new ReadError(`${location}: invalid JSON: ${(error as Error).message}`);
  }
  const members = (Array.isArray(value) ? { ids: value } : (value ?? {})) as Record<
    string,
    unknown
  >;
  const { matches, query_index: index = query } = members;
  if (index !== query) {
    throw new RowError(
      location,
      `found query_index ${show(index)}, expected ${query}: a line per query, in their order`,
    );
  }
  const list = Array.isArray(matches)
    ? matches.map((match: { readonly id?: unknown } | null) => match?.id)
    : LIST_NAMES.map((name) => members[name]).find(Array.isArray);
  if (list === undefined) {
    throw new RowError(location, `found ${show(value)}, expected matches, ids or a list of ids`);
  }
  return list.map((id) => idOf(location, id));
}

/** Reads an id: a string, or an integer of JSON or Arrow. Throws RowError. */
function idOf(location: string, value: unknown): string {
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  if ((typeof value === 'string' && value !== '') || isInteger) return String(value);
  throw new RowError(location, `found the id ${show(value)}, expected a string or an integer`);
}

/** Reads a query_index or a rank. Throws RowError. */
function countOf(location: string, name: string, value: unknown): number {
  const count = value === null || value === '' ? Number.NaN : Number(value);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new RowError(location, `found the ${name} ${show(value)}, expected an integer from 0`);
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
  let columns: readonly string[] | undefined;
  for await (const { cells, line } of recordsOf(source, ',')) {
    if (columns === undefined) {
      columns = cells;
      const hasBoth = columns.includes('query_index') && columns.includes('id');
      if (!hasBoth) throw noColumns(name, columns, []);
      continue;
    }
    const location = `${name}:${line}`;
    if (cells.length !== columns.length) {
      const expected = `${columns.length} as in the header`;
      throw new RowError(location, `found ${cells.length} cells, expected ${expected}`);
    }
    const [query, id, rank] = ['query_index', 'id', 'rank'].map(
      (each) => cells[columns!.indexOf(each)],
    );
    yield matchOf(location, { query, id, rank });
  }
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

/** The file as Arrow streams; for Parquet, one per row group. */
async function* arrowStreams(
  source: InputSource,
  format: string,
): AsyncGenerator<AsyncIterable<Uint8Array>> {
  if (format !== 'parquet') {
    yield source.chunks();
    return;
  }
  const { arrowStreamsOf } = await import('../../readers/parquet-rows.js');
  yield* arrowStreamsOf(source, ROWS_PER_BATCH);
}

function noColumns(
  name: string,
  found: readonly string[],
  listNames: readonly string[],
): ReadError {
  const expected = ['query_index and id', ...listNames].join(', or ');
  return new ReadError(`${name}: found the columns ${found.join(', ')}; expected ${expected}`);
}

/** Ids are read as float32, which represents integers below this exactly. */
const EXACT_ID_MAX = 2 ** 24;

/** The ids in an ivecs file or in the dataset `neighbors` of an HDF5 file. */
async function* numberLists(source: InputSource, k: number): AsyncGenerator<readonly string[]> {
  const path = source.name;
  const reader = await openVectors(source, {
    dataset: 'neighbors',
    rowsPerBatch: ROWS_PER_BATCH,
  });
  for await (const { rowCount, dimension, values } of reader.batches(0)) {
    if (dimension < k) {
      throw new ReadError(`${path}: found ${dimension} ids per query, but --top-k is ${k}`);
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
  throw new ReadError(`${path}: found the id ${id}, expected integers below ${EXACT_ID_MAX}`);
}
