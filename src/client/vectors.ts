// The methods of one collection that send and receive JSON. Every write by POST carries an
// idempotency key, so that a lost reply is asked for again without writing twice.

import type { JsonObject } from '../common/types.js';
import type { Calls } from './calls.js';
import { SagittaClientError } from './error.js';
import { type CallOptions, callOf, pathPart, type WriteOptions } from './options.js';
import { itemsOf, pagesOf } from './pages.js';
import {
  createSharedRoutes,
  listQuery,
  readList,
  readMatches,
  type SharedRoutes,
  wireQuery,
} from './shared-routes.js';
import { createStreams, type Streams } from './streams.js';
import type {
  DeleteManyReply,
  DeleteReply,
  DeleteSelection,
  FetchReply,
  IncludeValues,
  ListRequest,
  Match,
  PatchReply,
  PlainValues,
  QueryReply,
  QueryRequest,
  RecallReply,
  StoredVector,
  ValuesOf,
  VectorInput,
  VectorPage,
  VectorValues,
  WriteMode,
  WriteReply,
} from './types.js';
import { wireInclude, wireValues, wireVector, withFloat32 } from './values.js';

export interface Include<Asked extends PlainValues = PlainValues> {
  /** True when absent; `'float32'` for Float32Arrays. */
  readonly include_values?: Asked;
  /** True when absent. */
  readonly include_metadata?: boolean;
}

export interface RecallOptions extends CallOptions {
  /** Only rows that pass are neighbours. */
  readonly filter?: JsonObject;
  /** In place of the collection's. */
  readonly metric?: QueryRequest['metric'];
  readonly minSequence?: number;
}

/** All throw `collection_not_found` where there is no such collection, or none for this key. */
export interface Vectors extends Streams, SharedRoutes {
  /** All of them or none: `dimension_mismatch`, `invalid_vector`, `vector_exists`, … */
  upsert(
    vectors: readonly VectorInput[],
    options?: WriteOptions & { mode?: WriteMode },
  ): Promise<WriteReply>;
  /**
   * As upsert, of vectors that are JSON text already: metadata arrives as it is spelled, also where
   * parsing would change it (whole numbers beyond 2^53, `1.0`).
   */
  upsertText(
    vectors: readonly string[],
    options?: WriteOptions & { mode?: WriteMode },
  ): Promise<WriteReply>;
  /** Merges `metadata` (RFC 7396) and replaces `values`, where given. */
  patch(
    vectorId: string,
    change: { metadata?: JsonObject; values?: VectorValues },
    options?: CallOptions & { ifMatch?: string },
  ): Promise<PatchReply>;
  /** Throws `vector_not_found`. */
  get<Asked extends PlainValues = true>(
    vectorId: string,
    include?: Include<Asked>,
    options?: CallOptions,
  ): Promise<StoredVector<ValuesOf<Asked>>>;
  /** In the order of the ids; those that are not there are named in `not_found`. */
  fetch<Asked extends PlainValues = true>(
    ids: readonly string[],
    include?: Include<Asked>,
    options?: CallOptions,
  ): Promise<FetchReply<ValuesOf<Asked>>>;
  /** Throws `vector_not_found` when there was none. */
  delete(vectorId: string, options?: WriteOptions): Promise<DeleteReply>;
  /** `dryRun` counts only. */
  deleteMany(
    selection: DeleteSelection,
    options?: WriteOptions & { dryRun?: boolean },
  ): Promise<DeleteManyReply>;
  /** The pages after one another, all of the snapshot that the first one opened. */
  listPages<Asked extends PlainValues = false>(
    request?: ListRequest<Asked>,
    options?: CallOptions,
  ): AsyncIterable<VectorPage<ValuesOf<Asked>>>;
  /** As listPages, one vector at a time. `limit` is how many are asked for at once (100). */
  listAll<Asked extends PlainValues = false>(
    request?: ListRequest<Asked>,
    options?: CallOptions,
  ): AsyncIterable<StoredVector<ValuesOf<Asked>>>;
  /** Exact. */
  count(filter?: JsonObject, options?: CallOptions): Promise<number>;
  /**
   * As queryPages, one match at a time. With `score_threshold` and no `top_k` it goes through
   * everything that scores as high; with `limit` and neither, through the whole collection.
   */
  queryAll<Asked extends IncludeValues = false>(
    request: QueryRequest<Asked>,
    options?: CallOptions,
  ): AsyncIterable<Match<ValuesOf<Asked>>>;
  /** Many queries (1 024), all of one snapshot; the replies are in the order of the queries. */
  queryBatch<Asked extends IncludeValues = false>(
    queries: readonly QueryRequest<Asked>[],
    options?: CallOptions,
  ): Promise<readonly QueryReply<ValuesOf<Asked>>[]>;
  /**
   * How many of the exact nearest neighbours somebody else's answers hold: `ids[q]` is what was
   * found for `vectors[q]`.
   */
  recall(
    vectors: readonly VectorValues[],
    ids: readonly (readonly string[])[],
    options?: RecallOptions,
  ): Promise<RecallReply>;
}

/** `root` is the path of the collection. */
export function createVectors(calls: Calls, root: string): Vectors {
  const { transport, get, ask, change } = calls;
  const write = async <Body>(path: string, body: object | string, call: WriteOptions) =>
    (await calls.write<Body>(root + path, body, call)).body;

  const vectors: Vectors = {
    ...createStreams(calls, root),
    ...createSharedRoutes(calls, root),
    upsert: (rows, call = {}) => {
      const { mode } = call;
      const body = { vectors: rows.map(wireVector), ...(mode !== undefined && { mode }) };
      return write('/vectors', body, call);
    },
    upsertText: (rows, call = {}) => {
      const mode = call.mode === undefined ? '' : `,"mode":${JSON.stringify(call.mode)}`;
      return write('/vectors', `{"vectors":[${rows.join(',')}]${mode}}`, call);
    },
    patch: (vectorId, { values, ...fields }, call) => {
      const body = { ...fields, ...(values !== undefined && { values: wireValues(values) }) };
      const headers = call?.ifMatch === undefined ? {} : { 'if-match': call.ifMatch };
      // Under a condition, a second try would fail because the first one succeeded.
      const rest = { body, headers, mayRepeat: call?.ifMatch === undefined };
      return change('PATCH', `${root}/vectors/${pathPart(vectorId)}`, rest, call);
    },
    async get<Asked extends PlainValues = true>(
      vectorId: string,
      include: Include<Asked> = {},
      call?: CallOptions,
    ) {
      const { body, headers } = await transport.send<StoredVector>({
        method: 'GET',
        path: `${root}/vectors/${pathPart(vectorId)}`,
        query: { ...wireInclude(include, true) },
        mayRepeat: true,
        ...callOf(call),
      });
      const [vector] = withFloat32<StoredVector, ValuesOf<Asked>>([body], include.include_values);
      const etag = headers.get('etag');
      return etag === null ? vector! : { ...vector!, etag };
    },
    async fetch<Asked extends PlainValues = true>(
      ids: readonly string[],
      include: Include<Asked> = {},
      call?: CallOptions,
    ) {
      const body = { ids, ...wireInclude(include, true) };
      const reply = await ask<FetchReply>(`${root}/vectors/fetch`, body, call);
      return {
        ...reply,
        vectors: withFloat32<StoredVector, ValuesOf<Asked>>(reply.vectors, include.include_values),
      };
    },
    async delete(vectorId, call = {}) {
      // Not by DELETE, which has no idempotency key: after a lost reply nobody could tell a vector
      // that we have deleted from one that was never there or that somebody has written since.
      const { body, headers } = await calls.write<DeleteManyReply>(
        `${root}/vectors/delete`,
        { ids: [vectorId] },
        call,
      );
      if (body.deleted_count === 1) return { id: vectorId, deleted: true, sequence: body.sequence };
      const requestId = headers.get('x-request-id') ?? undefined;
      const detail = `There is no vector with the id "${vectorId}".`;
      throw new SagittaClientError('vector_not_found', detail, { status: 404, requestId });
    },
    deleteMany: (selection, call = {}) => {
      const { dryRun } = call;
      const body = { ...selection, ...(dryRun !== undefined && { dry_run: dryRun }) };
      return write('/vectors/delete', body, call);
    },
    // Further pages are asked for by cursor alone, so that the first request says how to read them.
    listPages: (request = {}, call) =>
      pagesOf(request, async (page: ListRequest) =>
        readList(await get(`${root}/vectors`, listQuery(page), call), request),
      ),
    listAll: (request, call) => itemsOf(vectors.listPages(request, call), (page) => page.vectors),
    count: async (filter, call) => {
      const body = filter === undefined ? {} : { filter };
      return (await ask<{ count: number }>(`${root}/count`, body, call)).count;
    },
    queryAll: (request, call) => itemsOf(vectors.queryPages(request, call), (page) => page.matches),
    async queryBatch(queries, call) {
      const body = { queries: queries.map(wireQuery) };
      const path = `${root}/query/batch`;
      const { results } = await ask<{ results: readonly QueryReply[] }>(path, body, call);
      return results.map((reply, at) => readMatches(reply, queries[at]!));
    },
    recall: (queries, ids, { filter, metric, minSequence, ...call } = {}) =>
      ask(
        `${root}/recall`,
        {
          vectors: queries.map(wireValues),
          ids,
          ...(filter !== undefined && { filter }),
          ...(metric !== undefined && { metric }),
          ...(minSequence !== undefined && { min_sequence: minSequence }),
        },
        call,
      ),
  };
  return vectors;
}
