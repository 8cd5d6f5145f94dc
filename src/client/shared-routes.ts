// Vectors by the routes that two places share: those of one collection, and those that name none, for
// a service that is configured with a default.

import type { Calls } from './calls.js';
import { type CallOptions, pathPart } from './options.js';
import { pagesOf } from './pages.js';
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
import { wireInclude, wireValues, wireVector, withFloat32 } from './values.js';

/** Of the default collection all throw `collection_required` where there is none. */
export interface SharedRoutes {
  /** Replaces the whole vector, or makes it. */
  put(vector: VectorInput & { id: string }, options?: CallOptions): Promise<PutReply>;
  /** One page, in the order of arrival. */
  list<Asked extends PlainValues = false>(
    request?: ListRequest<Asked>,
    options?: CallOptions,
  ): Promise<VectorPage<ValuesOf<Asked>>>;
  /** The nearest, best first: `top_k` of them (10), or a page of all with `limit` alone. */
  query<Asked extends IncludeValues = false>(
    request: QueryRequest<Asked>,
    options?: CallOptions,
  ): Promise<QueryReply<ValuesOf<Asked>>>;
  /** The pages after one another, all of the snapshot that the first one opened. */
  queryPages<Asked extends IncludeValues = false>(
    request: QueryRequest<Asked>,
    options?: CallOptions,
  ): AsyncIterable<QueryReply<ValuesOf<Asked>>>;
}

/** `root` is the path of a collection, empty for the default one. */
export function createSharedRoutes({ get, ask, change }: Calls, root = ''): SharedRoutes {
  const query = (request: QueryRequest, call: CallOptions | undefined) =>
    ask<QueryReply>(`${root}/query`, wireQuery(request), call);
  return {
    put: (vector, call) => {
      const path = `${root}/vectors/${pathPart(vector.id)}`;
      return change('PUT', path, { body: wireVector(vector), mayRepeat: true }, call);
    },
    list: async (request = {}, call) =>
      readList(await get(`${root}/vectors`, listQuery(request), call), request),
    query: async (request, call) => readMatches(await query(request, call), request),
    // Further pages are asked for by cursor alone, so that the first request says how to read them.
    queryPages: (request, call) =>
      pagesOf(request, async (page: QueryRequest) => readMatches(await query(page, call), request)),
  };
}

/** Of GET routes, whose filter is JSON in the query string. */
export function listQuery(request: ListRequest): object {
  const { filter, ...rest } = wireInclude(request, true);
  return { ...rest, ...(filter !== undefined && { filter: JSON.stringify(filter) }) };
}

export function wireQuery(request: QueryRequest): object {
  const { vector, ...rest } = wireInclude(request, 'base64');
  return { ...(vector !== undefined && { vector: wireValues(vector) }), ...rest };
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
