// The replies to a batch of queries as chunks of one body: a JSON object, lines of NDJSON, or Arrow. They
// are made group by group, in chunks short enough to hold in memory and to yield between them.

import { createBitmap, setBit } from '../../common/bitmap.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import { utf8ColumnOf } from '../../common/utf8-column.js';
import { columnOfVectors, type MultiVector, type SparseVector } from '../../common/vectors.js';
import type { Match, MatchVectors, QueryReply } from '../../database/query/query-api.js';
import {
  type ColumnToWrite,
  encodeBatch,
  encodeEnd,
  encodeSchema,
  type FieldToWrite,
} from '../../formats/arrow/ipc-writer.js';
import { sparseColumns, sparseFields } from '../../formats/arrow/sparse-fields.js';
import type { ReplyChunks } from './reply-stream.js';
import { yieldToEventLoop } from './yield.js';

/** Replies to consecutive queries. */
export interface ReplyGroup {
  readonly firstIndex: number;
  readonly replies: readonly QueryReply[];
}

/** Made in about 2 ms. Every write to a socket costs time, and what waits in a socket takes memory. */
const CHUNK_CHARACTERS = 64 * 1024;
const CHUNK_BYTES = 512 * 1024;

/** The JSON of one reply. */
export type WriteReply = (reply: QueryReply) => Promise<string>;

/** `{"results":[…]}`. */
export function jsonChunks(groups: AsyncIterable<ReplyGroup>, writeReply: WriteReply): ReplyChunks {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    return index === 0 ? text : `,${text}`;
  };
  return textChunks(groups, { head: '{"results":[', textOf, tail: ']}' });
}

/** One line per query, with its index, and its name if it has one. Removes the names that were used. */
export function ndjsonChunks(
  groups: AsyncIterable<ReplyGroup>,
  writeReply: WriteReply,
  queryIds: Map<number, string> | null,
): ReplyChunks {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    // Metadata keeps the line breaks it was sent with; between its tokens a space is the same.
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

/** The columns of an Arrow reply, besides those that every reply has. */
export interface ArrowReplyOptions {
  readonly sequence: number;
  /** The names of queries by their index, which are removed when they were used; null for none. */
  readonly queryIds: Map<number, string> | null;
  readonly hasDistance: boolean;
  readonly hasGroup: boolean;
  readonly hasMetadata: boolean;
  /** The vectors of matches; null without them. */
  readonly vectors: MatchVectors | null;
  /**
   * Reads the page after a reply, since Arrow cannot return a cursor; null when the query requests one
   * page only.
   */
  readonly next: (cursor: string, queryIndex: number) => Promise<QueryReply | null>;
}

/** One row per match, ordered by query and rank. */
export async function* arrowChunks(
  groups: AsyncIterable<ReplyGroup>,
  answers: ArrowReplyOptions,
): AsyncGenerator<Uint8Array> {
  const rows = new MatchRows(answers);
  // Sent with the first replies: until then an error can still become a problem reply.
  let head: Uint8Array | null = encodeSchema(
    fieldsOf(answers),
    new Map([['sequence', String(answers.sequence)]]),
  );
  for await (const { firstIndex, replies } of groups) {
    if (head !== null) yield head;
    head = null;
    for (const [i, reply] of replies.entries()) {
      let rank = 1;
      const queryId = answers.queryIds?.get(firstIndex + i) ?? '';
      answers.queryIds?.delete(firstIndex + i);
      for (let page: QueryReply | null = reply; page !== null; ) {
        for (const match of page.matches) {
          rows.add({ index: firstIndex + i, id: queryId }, rank++, match);
          if (rows.byteCount < CHUNK_BYTES) continue;
          yield* rows.take();
          await yieldToEventLoop();
        }
        const { nextCursor }: QueryReply = page;
        page = nextCursor === undefined ? null : await answers.next(nextCursor, firstIndex + i);
      }
    }
    yield* rows.take();
  }
  if (head !== null) yield head;
  yield encodeEnd();
}

function fieldsOf({
  queryIds,
  hasDistance,
  hasGroup,
  hasMetadata,
  vectors,
}: ArrowReplyOptions): FieldToWrite[] {
  return [
    { name: 'query_index', type: 'int64' },
    ...(queryIds === null ? [] : [{ name: 'query_id', type: 'utf8' } as const]),
    { name: 'rank', type: 'int32' },
    { name: 'id', type: 'utf8' },
    { name: 'score', type: 'float32' },
    ...(hasDistance ? [{ name: 'distance', type: 'float32' } as const] : []),
    ...(hasGroup ? [{ name: 'group', type: 'utf8' } as const] : []),
    ...(hasMetadata ? [{ name: 'metadata', type: 'utf8' } as const] : []),
    ...(vectors === null ? [] : vectorFields(vectors)),
  ];
}

function bytesOf(vector: Float32Array | MultiVector): number {
  return vector instanceof Float32Array ? vector.byteLength : vector.values.byteLength;
}

function vectorFields({ unnamed, named, multi, sparse }: MatchVectors): FieldToWrite[] {
  const fields = Object.entries(named).map(([name, { dimension }]): FieldToWrite => {
    return { name: `vectors.${name}`, type: { vectorOf: dimension }, isNullable: true };
  });
  for (const [name, { dimension }] of Object.entries(multi)) {
    fields.push({ name: `vectors.${name}`, type: { vectorsOf: dimension }, isNullable: true });
  }
  fields.push(...sparseFields(sparse));
  if (unnamed === null) return fields;
  return [{ name: 'values', type: { vectorOf: unnamed.dimension } }, ...fields];
}

/** Collects matches for a record batch. */
class MatchRows {
  readonly #answers: ArrowReplyOptions;
  #queries: { readonly index: number; readonly id: string }[] = [];
  #ranks: number[] = [];
  #matches: Match[] = [];
  /** The approximate size of the batch. */
  byteCount = 0;

  constructor(answers: ArrowReplyOptions) {
    this.#answers = answers;
  }

  /** The id of the query is written only if the queries have names. */
  add(query: { readonly index: number; readonly id: string }, rank: number, match: Match): void {
    this.#queries.push(query);
    this.#ranks.push(rank);
    this.#matches.push(match);
    this.byteCount += 24 + query.id.length + match.id.length + (match.metadata?.length ?? 0);
    if (typeof match.group === 'string') this.byteCount += match.group.length;
    if (match.values !== undefined) this.byteCount += match.values.byteLength;
    for (const vector of Object.values(match.vectors ?? {})) this.byteCount += bytesOf(vector);
    for (const { indices, values } of Object.values(match.sparseVectors ?? {})) {
      this.byteCount += indices.byteLength + values.byteLength;
    }
  }

  /** Returns the batch and starts the next one; empty when there are no rows. */
  take(): Uint8Array[] {
    const matches = this.#matches;
    const count = matches.length;
    if (count === 0) return [];
    const { queryIds, hasDistance, hasGroup, hasMetadata, vectors } = this.#answers;
    const batch = encodeBatch(count, [
      { numbers: BigInt64Array.from(this.#queries, ({ index }) => BigInt(index)) },
      ...(queryIds === null
        ? []
        : [{ text: utf8ColumnOf(this.#queries.map(({ id }) => id)), from: 0 }]),
      { numbers: Int32Array.from(this.#ranks) },
      { text: utf8ColumnOf(matches.map(({ id }) => id)), from: 0 },
      { numbers: Float32Array.from(matches, ({ score }) => score) },
      ...(hasDistance ? [{ numbers: Float32Array.from(matches, (match) => match.distance!) }] : []),
      ...(hasGroup
        ? [{ text: utf8ColumnOf(matches.map(({ group }) => stringifyExactJson(group))), from: 0 }]
        : []),
      ...(hasMetadata
        ? [{ text: utf8ColumnOf(matches.map((match) => match.metadata!)), from: 0 }]
        : []),
      ...(vectors === null ? [] : vectorColumns(matches, vectors)),
    ]);
    this.#queries = [];
    this.#ranks = [];
    this.#matches = [];
    this.byteCount = 0;
    return batch;
  }
}

function vectorColumns(
  matches: readonly Match[],
  { unnamed, named, multi, sparse }: MatchVectors,
): ColumnToWrite[] {
  const columns = Object.entries(named).map(([name, { dimension }]) => {
    return vectorColumn(dimension, matches, (match) => {
      const vector = namedVector(match, name);
      return vector instanceof Float32Array ? vector : undefined;
    });
  });
  for (const [name, { dimension }] of Object.entries(multi)) {
    const vectors = matches.map((match) => {
      const vector = namedVector(match, name);
      return vector instanceof Float32Array ? undefined : vector;
    });
    const column = columnOfVectors({ kind: 'multi', dimension }, vectors);
    columns.push({ multi: column });
  }
  for (const name of sparse) {
    const vectors = matches.map((match) => sparseVector(match, name));
    columns.push(...sparseColumns(columnOfVectors({ kind: 'sparse' }, vectors)));
  }
  if (unnamed === null) return columns;
  return [vectorColumn(unnamed.dimension, matches, ({ values }) => values), ...columns];
}

/** Not a member of every object that has the name of the vector. */
function namedVector(
  { vectors = {} }: Match,
  name: string,
): Float32Array | MultiVector | undefined {
  return Object.hasOwn(vectors, name) ? vectors[name] : undefined;
}

/** The same for a sparse vector. */
function sparseVector({ sparseVectors = {} }: Match, name: string): SparseVector | undefined {
  return Object.hasOwn(sparseVectors, name) ? sparseVectors[name] : undefined;
}

/** Null in matches without the vector. */
function vectorColumn(
  dimension: number,
  matches: readonly Match[],
  vectorOf: (match: Match) => Float32Array | undefined,
): ColumnToWrite {
  const vectors = new Float32Array(matches.length * dimension);
  const presence = createBitmap(matches.length);
  for (const [i, match] of matches.entries()) {
    const vector = vectorOf(match);
    if (vector === undefined) continue;
    vectors.set(vector, i * dimension);
    setBit(presence, i);
  }
  return { vectors, presence };
}
