// The vector routes that exist both below a collection and at the top level, where they address the
// server's default collection.

import type { JsonObject } from '../../../src/common/types.js';
import { type CallOptions, pagesOf, pathSegment, type Requests } from './requests.js';
import type {
  FoundMatch,
  IncludeMetadata,
  IncludeValues,
  ListRequest,
  PlainValues,
  PutReply,
  QueryMembers,
  QueryReply,
  QueryRequest,
  ReadVector,
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

/** On the default collection, all methods throw `collection_required` when none is configured. */
export interface SharedRoutes<Metadata extends object = JsonObject> {
  /** Creates the vector or replaces it completely. */
  put(vector: VectorInput<Metadata> & { id: string }, options?: CallOptions): Promise<PutReply>;
  /** One page, in insertion order or sorted by `sort`. */
  list<Asked extends PlainValues = false, Included extends IncludeMetadata<Metadata> = true>(
    request?: ListRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): Promise<VectorPage<ReadVector<Metadata, Asked, Included>>>;
  /** The nearest vectors, best first: `top_k` of them (10), or a page of all vectors if only `limit` is given. */
  query<Asked extends IncludeValues = false, Included extends IncludeMetadata<Metadata> = false>(
    request: QueryRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): Promise<QueryReply<FoundMatch<Metadata, Asked, Included>>>;
  /**
   * All pages of one snapshot: of all vectors that the query ranks, unless `top_k`, `score_threshold` or a cursor bounds
   * them. `limit` is the page size (100).
   */
  queryPages<
    Asked extends IncludeValues = false,
    Included extends IncludeMetadata<Metadata> = false,
  >(
    request: QueryRequest<Metadata, Asked, Included>,
    options?: CallOptions,
  ): AsyncIterable<QueryReply<FoundMatch<Metadata, Asked, Included>>>;
}

/** `root` is the path of a collection; empty for the default collection. */
export function createSharedRoutes({ read, change }: Requests, root = ''): SharedRoutes {
  const query = (request: QueryMembers, options: CallOptions | undefined) =>
    read<QueryReply>(`${root}/query`, wireQuery(request), options);
  return {
    put: async (vector, options) => {
      const path = `${root}/vectors/${pathSegment(vector.id)}`;
      // With a condition, a retry would fail because the first attempt succeeded.
      const isIdempotent = vector.if_sequence === undefined;
      return change('PUT', path, { body: wireVector(vector, ''), isIdempotent }, options);
    },
    list: async (request = {}, options) =>
      readList(await readPage({ read }, root, request, options), request),
    query: async (request, options) => readMatches(await query(request, options), request),
    // The following pages are requested by cursor alone, so the first request determines their types.
    queryPages: (request, options) =>
      pagesOf(withLimit(request), async (page: QueryMembers) =>
        readMatches(await query(page, options), request),
      ),
  };
}

/** The server's default page size. */
const PAGE_MATCHES = 100;
/** The server's limit for `top_k` and for the matches of a page of groups. */
const MATCHES_MAX = 10_000;

/** Adds `limit` to an unbounded request: without any bound the server returns only the ten nearest. */
function withLimit(request: QueryMembers): QueryMembers {
  const { limit, top_k, score_threshold, cursor, group_size = 1 } = request ?? {};
  const isBounded = top_k !== undefined || score_threshold !== undefined || cursor !== undefined;
  if (limit !== undefined || isBounded) return request;
  const groupCount = Math.max(1, Math.floor(MATCHES_MAX / group_size));
  return { ...request, limit: Math.min(PAGE_MATCHES, groupCount) };
}

/** Lists one page. The request goes into the body, because a long filter may not fit into a URL. */
export function readPage(
  { read }: Pick<Requests, 'read'>,
  root: string,
  request: ListRequest,
  options: CallOptions | undefined,
): Promise<VectorPage> {
  return read(`${root}/vectors/list`, wireInclude(request, true), options);
}

/** The JSON body of a query. */
export function wireQuery(request: QueryMembers, pointer = ''): object {
  if (typeof request !== 'object' || request === null) {
    throw unexpected(request, 'a query such as { vector: [0.5, 1], top_k: 10 }', pointer);
  }
  const { prefetch, ...rest } = wireInclude(request, 'base64');
  return {
    ...wireRanking(rest, pointer),
    ...(prefetch !== undefined && { prefetch: wireRanking(prefetch, `${pointer}/prefetch`) }),
  };
}

/** Encodes the vectors of a ranking and of the parts of a fusion. The server explains what is wrong with other shapes. */
function wireRanking(
  ranking: Pick<QueryMembers, 'vector' | 'multi_vector' | 'fusion'>,
  pointer: string,
): object {
  if (typeof ranking !== 'object' || ranking === null) return ranking;
  const { vector, multi_vector, fusion, ...rest } = ranking;
  const multi = multi_vector && wireMulti(multi_vector, `${pointer}/multi_vector`);
  const parts = Array.isArray(fusion?.parts)
    ? fusion.parts.map((part, at) => wireRanking(part, `${pointer}/fusion/parts/${at}`))
    : fusion?.parts;
  return {
    ...(vector !== undefined && { vector: wireValues(vector, `${pointer}/vector`) }),
    ...(multi !== undefined && { multi_vector: multi }),
    ...(fusion !== undefined && { fusion: { ...fusion, parts } }),
    ...rest,
  };
}

/** Converts the values of a page to the requested form, which determines the type of the page. */
export function readList<Page>(
  page: Pick<VectorPage, 'vectors'>,
  { include_values: asked }: AskedValues,
): Page {
  return { ...page, vectors: withFloat32(page.vectors, asked) } as Page;
}

/** Converts the values of matches to the requested form. */
export function readMatches<Reply>(
  reply: QueryReply,
  { include_values: asked }: AskedValues,
): Reply {
  return { ...reply, matches: withFloat32(reply.matches, asked) } as Reply;
}

interface AskedValues {
  readonly include_values?: IncludeValues;
}
