// Writes the replies to a batch of queries as chunks of one body: a JSON object, lines of NDJSON, or a table. Groups of
// replies are written one after another, with yields to the event loop between chunks.

import type { z } from 'zod';
import type { FieldShapes } from '../../common/types.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import type { Match, QueryReply } from '../../database/api/query-api.js';
import { yieldToEventLoop } from '../limits/event-loop-yield.js';
import type { ReplyChunks } from '../wire/reply.js';
import {
  type MatchFields,
  type MatchRows,
  matchColumns,
  matchVectorFields,
  vectorsOfMatches,
} from './match-columns.js';
import { type Table, type TableColumn, tableOf } from './table.js';
import type { VectorField } from './vector-columns.js';

/** Replies to consecutive queries. */
export interface ReplyGroup {
  readonly firstIndex: number;
  readonly replies: readonly QueryReply[];
}

/** Written in about 2 ms. Each write to a socket costs time, and bytes that wait in a socket take memory. */
const CHUNK_CHARACTERS = 64 * 1024;
const CHUNK_BYTES = 512 * 1024;

/** Returns the JSON of a reply. */
export type WriteReply = (reply: QueryReply) => Promise<string>;

/** `{"results":[…]}`. */
export function jsonChunks(groups: AsyncIterable<ReplyGroup>, writeReply: WriteReply): ReplyChunks {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    return index === 0 ? text : `,${text}`;
  };
  return textChunks(groups, { head: '{"results":[', textOf, tail: ']}' });
}

/** A line per query with its index, and its name if it has one. Removes used names from `queryIds`. */
export function ndjsonChunks(
  groups: AsyncIterable<ReplyGroup>,
  writeReply: WriteReply,
  queryIds: Map<number, string> | null,
): ReplyChunks {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    // Metadata is verbatim and may contain line breaks between tokens, which a space can replace.
    const queryId = queryIds?.get(index);
    queryIds?.delete(index);
    const name = queryId === undefined ? '' : `"query_id":${JSON.stringify(queryId)},`;
    return `{"query_index":${index},${name}${text.slice(1).replace(/[\n\r]/g, ' ')}\n`;
  };
  return textChunks(groups, { head: '', textOf, tail: '' });
}

async function* textChunks(
  groups: AsyncIterable<ReplyGroup>,
  {
    head,
    textOf,
    tail,
  }: { head: string; textOf: (reply: QueryReply, index: number) => Promise<string>; tail: string },
): AsyncGenerator<string> {
  let chunk = head;
  for await (const { firstIndex, replies } of groups) {
    for (const [i, reply] of replies.entries()) {
      chunk += await textOf(reply, firstIndex + i);
      if (chunk.length < CHUNK_CHARACTERS) continue;
      yield chunk;
      chunk = '';
      await yieldToEventLoop();
    }
    if (chunk !== head) {
      yield chunk;
      chunk = '';
    }
  }
  yield chunk + tail;
}

export interface MatchTableOptions {
  /** The schema of a match. */
  readonly schema: z.ZodObject;
  readonly sequence: number;
  /** The names of queries by index, from which used ones are removed; null for none. */
  readonly queryIds: Map<number, string> | null;
  readonly fields: MatchFields;
  /** The vectors of matches; null if they are not requested. */
  readonly vectors: FieldShapes | null;
  /** Reads the page after a reply, since a table cannot contain a cursor; null if the query requests one page only. */
  readonly next: (cursor: string, queryIndex: number) => Promise<QueryReply | null>;
}

interface RankedRows extends MatchRows {
  readonly queries: readonly QueryName[];
  readonly ranks: readonly number[];
}

interface QueryName {
  readonly index: number;
  /** Empty for queries without names. */
  readonly id: string;
}

/** A row per match, ordered by query and rank. */
export function matchTable(groups: AsyncIterable<ReplyGroup>, options: MatchTableOptions): Table {
  const vectors = matchVectorFields(options.vectors);
  const columns: TableColumn<RankedRows>[] = [
    {
      name: 'query_index',
      type: 'int64',
      of: ({ queries }) => ({
        leaf: BigInt64Array.from(queries, ({ index }) => BigInt(index)),
      }),
    },
    ...(options.queryIds === null ? [] : [QUERY_ID]),
    { name: 'rank', type: 'int32', of: ({ ranks }) => ({ leaf: Int32Array.from(ranks) }) },
    ...matchColumns(options.schema, options.fields, vectors),
  ];
  const rows = rankedRows(groups, vectors, options);
  const metadata = new Map([['sequence', String(options.sequence)]]);
  return tableOf(columns, rows, { metadata });
}

const QUERY_ID: TableColumn<RankedRows> = {
  name: 'query_id',
  type: 'utf8',
  of: ({ queries }) => ({ leaf: utf8ColumnOf(queries.map(({ id }) => id)) }),
};

/** The rows of each group in batches. A group without rows yields an empty batch, so that the reply can begin. */
async function* rankedRows(
  groups: AsyncIterable<ReplyGroup>,
  vectors: readonly VectorField[],
  { queryIds, next }: MatchTableOptions,
): AsyncGenerator<RankedRows> {
  let [queries, ranks, matches]: [QueryName[], number[], Match[]] = [[], [], []];
  let byteCount = 0;
  const take = (): RankedRows => {
    const rows = { queries, ranks, matches, count: matches.length };
    [queries, ranks, matches] = [[], [], []];
    byteCount = 0;
    return { ...rows, vectors: vectorsOfMatches(rows.matches, vectors) };
  };
  for await (const { firstIndex, replies } of groups) {
    for (const [i, reply] of replies.entries()) {
      const query = { index: firstIndex + i, id: queryIds?.get(firstIndex + i) ?? '' };
      queryIds?.delete(query.index);
      let rank = 1;
      for (let page: QueryReply | null = reply; page !== null; ) {
        for (const match of page.matches) {
          queries.push(query);
          ranks.push(rank++);
          matches.push(match);
          byteCount += ROW_BYTES + query.id.length + sizeOf(match);
          if (byteCount < CHUNK_BYTES) continue;
          yield take();
          await yieldToEventLoop();
        }
        const { nextCursor }: QueryReply = page;
        page = nextCursor === undefined ? null : await next(nextCursor, query.index);
      }
    }
    yield take();
  }
}

/** The size of the numbers of a row. */
const ROW_BYTES = 24;

/** The approximate size of texts and vectors. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum, member) => sum + sizeOf(member), 0);
}
