// The answers of many queries as they are sent: one JSON object, a line each, or Arrow. Made group by
// group, in pieces that are short enough to be held and to let others have their turn.

import { utf8ColumnOf } from '../../common/utf8-column.js';
import type { Match, QueryReply } from '../../database/query/query-api.js';
import type { FieldToWrite } from '../../formats/arrow/ipc-writer.js';
import { encodeBatch, encodeEnd, encodeSchema } from '../../formats/arrow/ipc-writer.js';
import type { ReplyPieces } from './reply-stream.js';
import { nextTurn } from './yield.js';

/** Replies to consecutive queries. */
export interface AnsweredGroup {
  readonly firstIndex: number;
  readonly replies: readonly QueryReply[];
}

/** A write to the socket has its price; what waits in it is held. */
const PIECE_CHARACTERS = 256 * 1024;
const PIECE_BYTES = 2 * 1024 * 1024;

/** The JSON of one reply. */
export type WriteReply = (reply: QueryReply) => Promise<string>;

/** `{"results":[…]}`. */
export function jsonPieces(
  groups: AsyncIterable<AnsweredGroup>,
  writeReply: WriteReply,
): ReplyPieces {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    return index === 0 ? text : `,${text}`;
  };
  return textPieces(groups, { head: '{"results":[', textOf, tail: ']}' });
}

/** One line per query, with its index. */
export function ndjsonPieces(
  groups: AsyncIterable<AnsweredGroup>,
  writeReply: WriteReply,
): ReplyPieces {
  const textOf = async (reply: QueryReply, index: number) => {
    const text = await writeReply(reply);
    // Metadata is as it was sent, perhaps in lines: between its tokens, where a space will do.
    return `{"query_index":${index},${text.slice(1).replace(/[\n\r]/g, ' ')}\n`;
  };
  return textPieces(groups, { head: '', textOf, tail: '' });
}

async function* textPieces(
  groups: AsyncIterable<AnsweredGroup>,
  {
    head,
    textOf,
    tail,
  }: { head: string; textOf: (reply: QueryReply, index: number) => Promise<string>; tail: string },
): AsyncGenerator<string> {
  let piece = head;
  for await (const { firstIndex, replies } of groups) {
    for (const [i, reply] of replies.entries()) {
      piece += await textOf(reply, firstIndex + i);
      if (piece.length < PIECE_CHARACTERS) continue;
      yield piece;
      piece = '';
      await nextTurn();
    }
    if (piece !== head) {
      yield piece;
      piece = '';
    }
  }
  yield piece + tail;
}

/** What the rows of an Arrow reply have beside the place, the id and the score of a match. */
export interface ArrowAnswers {
  readonly sequence: number;
  readonly dimension: number;
  readonly hasDistance: boolean;
  readonly hasMetadata: boolean;
  readonly hasValues: boolean;
  /** The page after a reply that has more: Arrow has no place for a cursor. Null where a page is all that the query asks for. */
  readonly next: (cursor: string, queryIndex: number) => Promise<QueryReply | null>;
}

/** A row a match, in the order of queries and ranks. */
export async function* arrowPieces(
  groups: AsyncIterable<AnsweredGroup>,
  answers: ArrowAnswers,
): AsyncGenerator<Uint8Array> {
  const rows = new MatchRows(answers);
  // Sent with the first answers, until when a failure is still told as one.
  let head: Uint8Array | null = encodeSchema(
    fieldsOf(answers),
    new Map([['sequence', String(answers.sequence)]]),
  );
  for await (const { firstIndex, replies } of groups) {
    if (head !== null) yield head;
    head = null;
    for (const [i, reply] of replies.entries()) {
      let rank = 1;
      for (let page: QueryReply | null = reply; page !== null; ) {
        for (const match of page.matches) {
          rows.add(firstIndex + i, rank++, match);
          if (rows.byteCount < PIECE_BYTES) continue;
          yield* rows.take();
          await nextTurn();
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
  dimension,
  hasDistance,
  hasMetadata,
  hasValues,
}: ArrowAnswers): FieldToWrite[] {
  return [
    { name: 'query_index', type: 'int64' },
    { name: 'rank', type: 'int32' },
    { name: 'id', type: 'utf8' },
    { name: 'score', type: 'float32' },
    ...(hasDistance ? [{ name: 'distance', type: 'float32' } as const] : []),
    ...(hasMetadata ? [{ name: 'metadata', type: 'utf8' } as const] : []),
    ...(hasValues ? [{ name: 'values', type: { vectorOf: dimension } } as const] : []),
  ];
}

/** Matches that wait to become a record batch. */
class MatchRows {
  readonly #answers: ArrowAnswers;
  #queries: number[] = [];
  #ranks: number[] = [];
  #matches: Match[] = [];
  /** Of the batch, about. */
  byteCount = 0;

  constructor(answers: ArrowAnswers) {
    this.#answers = answers;
  }

  add(queryIndex: number, rank: number, match: Match): void {
    this.#queries.push(queryIndex);
    this.#ranks.push(rank);
    this.#matches.push(match);
    this.byteCount += 24 + match.id.length + (match.metadata?.length ?? 0);
    if (match.values !== undefined) this.byteCount += match.values.byteLength;
  }

  /** The batch, and begins the next one; nothing without rows. */
  take(): Uint8Array[] {
    const matches = this.#matches;
    const count = matches.length;
    if (count === 0) return [];
    const { dimension, hasDistance, hasMetadata, hasValues } = this.#answers;
    const batch = encodeBatch(count, [
      { numbers: BigInt64Array.from(this.#queries, BigInt) },
      { numbers: Int32Array.from(this.#ranks) },
      { text: utf8ColumnOf(matches.map(({ id }) => id)), from: 0 },
      { numbers: Float32Array.from(matches, ({ score }) => score) },
      ...(hasDistance ? [{ numbers: Float32Array.from(matches, (match) => match.distance!) }] : []),
      ...(hasMetadata
        ? [{ text: utf8ColumnOf(matches.map((match) => match.metadata!)), from: 0 }]
        : []),
      ...(hasValues ? [{ vectors: valuesOf(matches, dimension) }] : []),
    ]);
    this.#queries = [];
    this.#ranks = [];
    this.#matches = [];
    this.byteCount = 0;
    return batch;
  }
}

function valuesOf(matches: readonly Match[], dimension: number): Float32Array {
  const values = new Float32Array(matches.length * dimension);
  for (const [i, match] of matches.entries()) values.set(match.values!, i * dimension);
  return values;
}
