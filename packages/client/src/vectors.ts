// The methods of one collection that send and receive JSON. Every POST that writes carries an idempotency
// key, so that it can be retried after a lost reply without writing twice.

import type { JsonObject } from '../../../src/common/types.js';
import { encodeFilter } from './encode-json.js';
import { SagittaClientError } from './error.js';
import { requireKnown } from './known-options.js';
import { createProjections, type Projections } from './projection.js';
import {
  type CallOptions,
  callOptions,
  itemsOf,
  pagesOf,
  pathSegment,
  type Requests,
  type WriteOptions,
} from './requests.js';
import {
  createSharedRoutes,
  readList,
  readMatches,
  readPage,
  type SharedRoutes,
  wireQuery,
} from './shared-routes.js';
import { createStreams, type Streams } from './streams.js';
import type {
  AggregateReply,
  AggregateRequest,
  CountRequest,
  DeleteManyReply,
  DeleteReply,
  FetchReply,
  FoundMatch,
  FoundSchema,
  IncludeMetadata,
  IncludeValues,
  ListRequest,
  MetadataChange,
  PatchInput,
  PatchReply,
  PlainValues,
  QueryReply,
  QueryRequest,
  ReadVector,
  RecallReply,
  RecallRequest,
  SchemaRequest,
  StoredVector,
  UpdateManyReply,
  VectorInput,
  VectorPage,
  VectorSelection,
  WriteMode,
  WriteReply,
} from './types.js';
import {
  pointerTo,
  requireArray,
  unexpected,
  wireInclude,
  wireMulti,
  wireVector,
  withFloat32,
} from './values.js';

export interface Include<
  Asked extends PlainValues = PlainValues,
  Included extends IncludeMetadata = IncludeMetadata,
> {
  /** True when absent; `'float32'` for Float32Arrays. */
  readonly include_values?: Asked;
  /** True when absent. */
  readonly include_metadata?: Included;
  /** Whether to include the sequence of the vector's last write, for `if_sequence`; false when absent. */
  readonly include_sequence?: boolean;
}

/**
 * All methods throw `collection_not_found` if the collection does not exist or the key has no access.
 * `Metadata` is the type of metadata in filters, writes and replies; the client does not check it.
 */
export interface Vectors<Metadata extends object = JsonObject>
  extends Streams<Metadata>,
    Projections<Metadata>,
    SharedRoutes<Metadata> {
  /** Changes parts of existing vectors, all or none. Throws `vector_not_found`, … */
  upsert(
    vectors: readonly PatchInput<Metadata>[],
    options: WriteOptions & { mode: 'patch' },
  ): Promise<WriteReply>;
  /** Writes all vectors or none. Throws `dimension_mismatch`, `invalid_vector`, `vector_exists`, … */
  upsert(
    vectors: readonly VectorInput<Metadata>[],
    options?: WriteOptions & { mode?: WriteMode },
  ): Promise<WriteReply>;
  /**
   * Like `upsert`, for vectors that are already JSON text, so that metadata keeps the spelling that parsing
   * would change (integers beyond 2^53, `1.0`).
   */
  upsertText(
    vectors: readonly string[],
    options?: WriteOptions & { mode?: WriteMode | 'patch' },
  ): Promise<WriteReply>;
  /** Merges `metadata` (RFC 7396), replaces `values`, and sets named and sparse vectors or removes them with null. */
  patch(
    vectorId: string,
    change: Omit<PatchInput<Metadata>, 'id'>,
    options?: CallOptions & { ifMatch?: string },
  ): Promise<PatchReply>;
  /** One vector. Throws `vector_not_found`. */
  get<Asked extends PlainValues = true, Included extends IncludeMetadata<Metadata> = true>(
    vectorId: string,
    include?: Include<Asked, Included>,
    options?: CallOptions,
  ): Promise<ReadVector<Metadata, Asked, Included>>;
  /** The vectors in the order of the ids; missing ids are listed in `not_found`. */
  fetch<Asked extends PlainValues = true, Included extends IncludeMetadata<Metadata> = true>(
    ids: readonly string[],
    include?: Include<Asked, Included>,
    options?: CallOptions,
  ): Promise<FetchReply<ReadVector<Metadata, Asked, Included>>>;
  /** Deletes one vector. Throws `vector_not_found` if it does not exist. */
  delete(vectorId: string, options?: WriteOptions): Promise<DeleteReply>;
  /** Deletes the selected vectors, or only counts them if `dryRun` is set. */
  deleteMany(
    selection: VectorSelection<Metadata>,
    options?: WriteOptions & { dryRun?: boolean },
  ): Promise<DeleteManyReply>;
  /**
   * Changes the metadata of the selected vectors, or of at most `limit` of them, in one atomic write;
   * repeat the call while `has_more` is true. Vectors that would not change are not written.
   */
  updateMany(
    selection: VectorSelection<Metadata>,
    change: MetadataChange<Metadata>,
    options?: WriteOptions & { limit?: number },
  ): Promise<UpdateManyReply>;
  /** All pages of one snapshot. */
  listPages<Asked extends PlainValues = false, Included extends IncludeMetadata<Metadata> = true>(
    request?: ListRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): AsyncIterable<VectorPage<ReadVector<Metadata, Asked, Included>>>;
  /** Like `listPages`, one vector at a time. `limit` is the page size (100). */
  listAll<Asked extends PlainValues = false, Included extends IncludeMetadata<Metadata> = true>(
    request?: ListRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): AsyncIterable<ReadVector<Metadata, Asked, Included>>;
  /** The exact number of vectors that pass the filter. */
  count(request?: CountRequest<Metadata>, options?: CallOptions): Promise<number>;
  /** Exact facets and stats over all vectors that pass the filter. */
  aggregate(request: AggregateRequest<Metadata>, options?: CallOptions): Promise<AggregateReply>;
  /** One page of the metadata paths found in the vectors, with types and ranges. */
  schema(request?: SchemaRequest<Metadata>, options?: CallOptions): Promise<FoundSchema>;
  /**
   * Like `queryPages`, one match at a time: all vectors of the collection, those with at least `score_threshold`, or the
   * nearest `top_k`.
   */
  queryAll<Asked extends IncludeValues = false, Included extends IncludeMetadata<Metadata> = false>(
    request: QueryRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): AsyncIterable<FoundMatch<Metadata, Asked, Included>>;
  /** Runs up to 1 024 queries on one snapshot; replies are in the order of the queries. */
  queryBatch<
    Asked extends IncludeValues = false,
    Included extends IncludeMetadata<Metadata> = false,
  >(
    queries: readonly QueryRequest<Metadata, Asked, Included>[],
    options?: CallOptions,
  ): Promise<readonly QueryReply<FoundMatch<Metadata, Asked, Included>>[]>;
  /**
   * Measures the recall of other search results: the share of the exact nearest neighbours of
   * `vectors[q]` that is in `ids[q]`.
   */
  recall(request: RecallRequest<Metadata>, options?: CallOptions): Promise<RecallReply>;
}

/** `root` is the path of the collection. */
export function createVectors(requests: Requests, root: string): Vectors {
  const { transport, get, read } = requests;
  const vectors: Vectors = {
    ...createStreams(requests, root),
    ...createProjections(requests, root),
    ...createSharedRoutes(requests, root),
    ...createWrites(requests, root),
    async get<Asked extends PlainValues = true, Included extends IncludeMetadata = true>(
      vectorId: string,
      include: Include<Asked, Included> = {},
      options?: CallOptions,
    ) {
      const { body, headers } = await transport.send<StoredVector>({
        method: 'GET',
        path: `${root}/vectors/${pathSegment(vectorId)}`,
        query: { ...wireInclude(include, true) },
        isIdempotent: true,
        ...callOptions(options),
      });
      const [vector] = withFloat32([body], include.include_values);
      const etag = headers.get('etag');
      return { ...vector!, ...(etag !== null && { etag }) } as ReadVector<
        JsonObject,
        Asked,
        Included
      >;
    },
    async fetch<Asked extends PlainValues = true, Included extends IncludeMetadata = true>(
      ids: readonly string[],
      include: Include<Asked, Included> = {},
      options?: CallOptions,
    ) {
      const body = { ids, ...wireInclude(include, true) };
      const reply = await read<FetchReply>(`${root}/vectors/fetch`, body, options);
      return readList<FetchReply<ReadVector<JsonObject, Asked, Included>>>(reply, include);
    },
    // The following pages are requested by cursor alone, so the first request determines their types.
    listPages: (request = {}, options) =>
      pagesOf(request, async (page: ListRequest) =>
        readList(await readPage(requests, root, page, options), request),
      ),
    listAll: (request, options) =>
      itemsOf(vectors.listPages(request, options), (page) => page.vectors),
    count: async (request = {}, options) =>
      (await read<{ count: number }>(`${root}/count`, request, options)).count,
    aggregate: (request, options) => read(`${root}/aggregate`, request, options),
    schema: ({ filter, ...page } = {}, options) =>
      get(`${root}/schema`, { ...page, filter: encodeFilter(filter) }, options),
    queryAll: (request, options) =>
      itemsOf(vectors.queryPages(request, options), (page) => page.matches),
    async queryBatch(queries, options) {
      requireArray(queries, 'an array of queries such as [{ vector: [0.5, 1], top_k: 10 }]');
      const body = { queries: queries.map((query, at) => wireQuery(query, `/queries/${at}`)) };
      const path = `${root}/query/batch`;
      const { results } = await read<{ results: readonly QueryReply[] }>(path, body, options);
      return results.map((reply, at) => readMatches(reply, queries[at]!));
    },
    recall: async (request, options) => {
      const body = { ...request, vectors: wireMulti(request.vectors, '/vectors') };
      return read(`${root}/recall`, body, options);
    },
  };
  return vectors;
}

/**
 * Throws SagittaClientError (`invalid_argument`) for an undefined member, which would otherwise be ignored and select more
 * vectors than intended.
 */
function requireSelection(selection: VectorSelection): VectorSelection {
  const expected = 'one of { ids: […] }, { filter: {…} } and { all: true }';
  if (typeof selection !== 'object' || selection === null) throw unexpected(selection, expected);
  for (const [name, value] of Object.entries(selection)) {
    if (value === undefined) throw unexpected(value, expected, pointerTo('', name));
  }
  return selection;
}

function createWrites(
  requests: Requests,
  root: string,
): Pick<Vectors, 'upsert' | 'upsertText' | 'patch' | 'delete' | 'deleteMany' | 'updateMany'> {
  const write = async <Body>(
    path: string,
    body: object | string,
    options: WriteOptions,
    name: string,
  ) => (await requests.write<Body>(root + path, body, options, {}, [name])).body;
  return {
    upsert: async (
      rows: readonly VectorInput[] | readonly PatchInput[],
      { mode, ...options }: WriteOptions & { mode?: WriteMode | 'patch' } = {},
    ) => {
      requireArray(rows, "an array of vectors such as [{ id: 'a', values: [0.5, 1] }]");
      const vectors = rows.map((row, at) => wireVector(row, `/vectors/${at}`));
      const body = { vectors, ...(mode !== undefined && { mode }) };
      return write('/vectors', body, options, 'mode');
    },
    upsertText: async (rows, { mode, ...options } = {}) => {
      requireArray(rows, 'an array of JSON texts, one per vector');
      const last = mode === undefined ? '' : `,"mode":${JSON.stringify(mode)}`;
      return write('/vectors', `{"vectors":[${rows.join(',')}]${last}}`, options, 'mode');
    },
    patch: async (vectorId, change, { ifMatch, ...options } = {}) => {
      requireKnown(options, ['ifMatch', 'signal', 'timeoutMs']);
      const body = wireVector(change, '');
      const headers = ifMatch === undefined ? {} : { 'if-match': ifMatch };
      // With a condition, a retry would fail because the first attempt succeeded.
      const isIdempotent = ifMatch === undefined && change.if_sequence === undefined;
      const rest = { body, headers, isIdempotent };
      return requests.change('PATCH', `${root}/vectors/${pathSegment(vectorId)}`, rest, options);
    },
    async delete(vectorId, options = {}) {
      // DELETE takes no idempotency key. After a lost reply, a vector that this call deleted could not be
      // told from one that never existed, or that another client has written since.
      const { body, headers } = await requests.write<DeleteManyReply>(
        `${root}/vectors/delete`,
        { ids: [vectorId] },
        options,
      );
      if (body.deleted_count === 1) return { id: vectorId, deleted: true, sequence: body.sequence };
      const requestId = headers.get('x-request-id') ?? undefined;
      const detail = `There is no vector with the id "${vectorId}".`;
      throw new SagittaClientError('vector_not_found', detail, { status: 404, requestId });
    },
    deleteMany: async (selection, { dryRun, ...options } = {}) => {
      const body = {
        ...requireSelection(selection),
        ...(dryRun !== undefined && { dry_run: dryRun }),
      };
      return write('/vectors/delete', body, options, 'dryRun');
    },
    updateMany: async (selection, change, { limit, ...options } = {}) => {
      const selected = requireSelection(selection);
      const body = { ...selected, ...change, ...(limit !== undefined && { limit }) };
      return write('/vectors/update', body, options, 'limit');
    },
  };
}
