// The routes that name no collection, for a service that is configured with one. What they take and
// give is as in vectors.ts.

import type { Calls } from './calls.js';
import { type CallOptions, pathPart } from './options.js';
import { pagesOf } from './pages.js';
import type {
  IncludeValues,
  ListRequest,
  PlainValues,
  PutReply,
  QueryReply,
  QueryRequest,
  ValuesOf,
  VectorInput,
  VectorPage,
} from './types.js';
import { wireVector } from './values.js';
import { listQuery, readList, readMatches, wireQuery } from './vectors.js';

/** All throw `collection_required` where the service is configured with none. */
export interface DefaultCollection {
  /** Replaces the whole vector, or makes it. */
  put(vector: VectorInput & { id: string }, options?: CallOptions): Promise<PutReply>;
  /** One page, in the order of arrival. */
  list<Asked extends PlainValues = false>(
    request?: ListRequest<Asked>,
    options?: CallOptions,
  ): Promise<VectorPage<ValuesOf<Asked>>>;
  /** The nearest, best first. */
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

export function createDefaultCollection({ get, ask, change }: Calls): DefaultCollection {
  const query = (request: QueryRequest, call: CallOptions | undefined) =>
    ask<QueryReply>('/query', wireQuery(request), call);
  return {
    put: (vector, call) => {
      const path = `/vectors/${pathPart(vector.id)}`;
      return change('PUT', path, { body: wireVector(vector), mayRepeat: true }, call);
    },
    list: async (request = {}, call) =>
      readList(await get('/vectors', listQuery(request), call), request),
    query: async (request, call) => readMatches(await query(request, call), request),
    queryPages: (request, call) =>
      pagesOf(request, async (page: QueryRequest) => readMatches(await query(page, call), request)),
  };
}
