// The vector routes that exist both below a collection and at the top level, where they address the
// server's default collection.

import type { JsonObject } from '../common/types.js';
import { encodeFilter, encodeJson } from './encode-json.js';
import { type CallOptions, pagesOf, pathSegment, type Requests } from './requests.js';
import type {
  IncludeValues,
  ListRequest,
  Match,
  PlainValues,
  PutReply,
  QueryReply,
  QueryRequest,
  StoredVector,
  ValuesOf,
  VectorInput,
  VectorPage,
} from './types.js';
import {
  unexpected,
  wireInclude,
  wireMulti,
  wireValues,
  wireVector,
  withFloat32,
} from './values.js';

/** For the default collection, all throw `collection_required` when none is configured. */
export interface SharedRoutes<Metadata extends object = JsonObject> {
  /** Replaces the whole vector or creates it. */
  put(vector: VectorInput<Metadata> & { id: string }, options?: CallOptions): Promise<PutReply>;
  /** One page, in insertion order or as `sort` says. */
  list<Asked extends PlainValues = false>(
    request?: ListRequest<Asked, Metadata>,
    options?: CallOptions,
  ): Promise<VectorPage<ValuesOf<Asked>, Metadata>>;
  /** The nearest vectors, best first: `top_k` of them (10), or with `limit` alone a page of all. */
  query<Asked extends IncludeValues = false>(
    request: QueryRequest<Asked, Metadata>,
    options?: CallOptions,
  ): Promise<QueryReply<ValuesOf<Asked>, Metadata>>;
  /**
   * All pages, from the snapshot that the first one opened: of all vectors that the query ranks, unless `top_k`,
   * `score_threshold` or a cursor bounds them. `limit` is the page size (100).
   */
  queryPages<Asked extends IncludeValues = false>(
    request: QueryRequest<Asked, Metadata>,
    options?: CallOptions,
  ): AsyncIterable<QueryReply<ValuesOf<Asked>, Metadata>>;
}

/** `root` is the path of a collection, empty for the default one. */
export function createSharedRoutes({ get, read, change }: Requests, root = ''): SharedRoutes {
  const query = (request: QueryRequest, options: CallOptions | undefined) =>
    read<QueryReply>(`${root}/query`, wireQuery(request), options);
  return {
    put: async (vector, options) => {
      const path = `${root}/vectors/${pathSegment(vector.id)}`;
      // With a condition, a retry would fail because the first attempt succeeded.
      const isIdempotent = vector.if_sequence === undefined;
      return change('PUT', path, { body: wireVector(vector, ''), isIdempotent }, options);
    },
    list: async (request = {}, options) =>
      readList(await get(`${root}/vectors`, listQuery(request), options), request),
    query: async (request, options) => readMatches(await query(request, options), request),
    // Further pages are requested by cursor alone, so the first request determines their types.
    queryPages: (request, options) =>
      pagesOf(withLimit(request), async (page: QueryRequest) =>
        readMatches(await query(page, options), request),
      ),
  };
}

/** The default of the server for pages. */
const PAGE_MATCHES = 100;
/** What the server takes as `top_k`, and as matches of a page of groups. */
const MATCHES_MAX = 10_000;

/** Without any bound the server answers with the ten nearest, and `limit` asks it for pages of all. */
function withLimit<Request extends QueryRequest>(request: Request): Request {
  const { limit, top_k, score_threshold, cursor, group_size = 1 } = request ?? {};
  const isBounded = top_k !== undefined || score_threshold !== undefined || cursor !== undefined;
  if (limit !== undefined || isBounded) return request;
  const groupCount = Math.max(1, Math.floor(MATCHES_MAX / group_size));
  return { ...request, limit: Math.min(PAGE_MATCHES, groupCount) };
}

/** The query string of a list request, with the filter and the sort keys as JSON. */
export function listQuery(request: ListRequest): object {
  const { filter, sort, ...rest } = wireInclude(request, true);
  return {
    ...rest,
    filter: encodeFilter(filter),
    ...(sort !== undefined && { sort: encodeJson(sort, '/sort') }),
  };
}

/** The JSON body of a query. */
export function wireQuery(request: QueryRequest, pointer = ''): object {
  if (typeof request !== 'object' || request === null) {
    throw unexpected(request, 'a query such as { vector: [0.5, 1], top_k: 10 }', pointer);
  }
  const { prefetch, ...rest } = wireInclude(request, 'base64');
  return {
    ...wireRanking(rest, pointer),
    ...(prefetch !== undefined && { prefetch: wireRanking(prefetch, `${pointer}/prefetch`) }),
  };
}

/** With the vectors, and those of the parts of a fusion, as they are sent. */
function wireRanking(
  {
    vector,
    multi_vector,
    fusion,
    ...rest
  }: Pick<QueryRequest, 'vector' | 'multi_vector' | 'fusion'>,
  pointer: string,
): object {
  const multi = multi_vector && wireMulti(multi_vector, `${pointer}/multi_vector`);
  const parts = fusion?.parts.map((part, at) => wireRanking(part, `${pointer}/fusion/parts/${at}`));
  return {
    ...(vector !== undefined && { vector: wireValues(vector, `${pointer}/vector`) }),
    ...(multi !== undefined && { multi_vector: multi }),
    ...(fusion !== undefined && { fusion: { ...fusion, parts } }),
    ...rest,
  };
}

export function readList<Asked extends PlainValues>(
  page: VectorPage,
  { include_values: asked }: ListRequest<Asked>,
): VectorPage<ValuesOf<Asked>> {
  return { ...page, vectors: withFloat32<StoredVector, ValuesOf<Asked>>(page.vectors, asked) };
}

export function readMatches<Asked extends IncludeValues>(
  reply: QueryReply,
  { include_values: asked }: QueryRequest<Asked>,
): QueryReply<ValuesOf<Asked>> {
  return { ...reply, matches: withFloat32<Match, ValuesOf<Asked>>(reply.matches, asked) };
}
