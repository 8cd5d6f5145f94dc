// The typed client: one method a route, pages as async iterators, no dependency but fetch. Every
// write by POST carries an idempotency key, so that a lost reply is asked for again without
// writing twice. Shapes are the wire's own (see types.ts).

import type { JsonObject } from '../types.js';
import { SagittaClientError } from './error.js';
import { createTransport, type TransportOptions } from './transport.js';
import type {
  ApiKeyInput,
  ApiKeyRecord,
  ApiKeyWithSecret,
  CollectionInput,
  CollectionPage,
  CollectionRecord,
  DeleteManyReply,
  DeleteReply,
  DeleteSelection,
  FetchReply,
  ListRequest,
  PatchReply,
  PutReply,
  QueryReply,
  QueryRequest,
  StoredVector,
  VectorInput,
  VectorPage,
  VectorValues,
  WriteMode,
  WriteReply,
} from './types.js';
import { encodeValues } from './values.js';

export { SagittaClientError } from './error.js';
export type { TransportOptions as ClientOptions } from './transport.js';
export type * from './types.js';
export { decodeValues, encodeValues } from './values.js';

export interface CallOptions {
  /** Ends the call, with the signal's reason as the error. */
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** Made by the client when absent; give one to make a write safe across restarts of yours. */
  readonly idempotencyKey?: string;
}

export interface Include {
  readonly include_values?: boolean;
  readonly include_metadata?: boolean;
}

export interface Client {
  /** Every bound of the service, by name. */
  limits(options?: CallOptions): Promise<JsonObject>;
  readonly collections: Collections;
  readonly keys: Keys;
  /** The vectors of one collection. Sends nothing by itself. */
  collection(id: string): Vectors;
}

export interface Collections {
  create(
    input: CollectionInput,
    options?: WriteOptions & { ifNotExists?: boolean },
  ): Promise<CollectionRecord>;
  get(id: string, options?: CallOptions): Promise<CollectionRecord>;
  list(
    request?: { limit?: number; cursor?: string },
    options?: CallOptions,
  ): Promise<CollectionPage>;
  /** Every collection, in id order, a page at a time. */
  pages(request?: { limit?: number }, options?: CallOptions): AsyncIterable<CollectionPage>;
  update(
    id: string,
    change: { description?: string | null; labels?: Readonly<Record<string, string>> },
    options?: CallOptions,
  ): Promise<CollectionRecord>;
  delete(
    id: string,
    options?: CallOptions,
  ): Promise<{ id: string; deleted: true; vector_count: number }>;
}

/** API keys; all of it needs the scope `admin`. */
export interface Keys {
  /** Sent once: a reply that is lost leaves a key that nobody has, to be revoked. */
  create(input: ApiKeyInput, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** Also those that have expired or were revoked. */
  list(options?: CallOptions): Promise<readonly ApiKeyRecord[]>;
  get(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
  /** A new secret; the old one goes on for `grace_seconds` (0). Sent once, too. */
  rotate(
    id: string,
    request?: { grace_seconds?: number },
    options?: CallOptions,
  ): Promise<ApiKeyWithSecret>;
  revoke(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
}

export interface Vectors {
  /** All of them or none. */
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
  /** Replaces the whole vector. */
  put(vector: VectorInput & { id: string }, options?: CallOptions): Promise<PutReply>;
  /** Merges `metadata` (RFC 7396) and replaces `values`, where given. */
  patch(
    vectorId: string,
    change: { metadata?: JsonObject; values?: VectorValues },
    options?: CallOptions & { ifMatch?: string },
  ): Promise<PatchReply>;
  get(vectorId: string, include?: Include, options?: CallOptions): Promise<StoredVector>;
  fetch(ids: readonly string[], include?: Include, options?: CallOptions): Promise<FetchReply>;
  delete(vectorId: string, options?: CallOptions): Promise<DeleteReply>;
  deleteMany(
    selection: DeleteSelection,
    options?: WriteOptions & { dryRun?: boolean },
  ): Promise<DeleteManyReply>;
  list(request?: ListRequest, options?: CallOptions): Promise<VectorPage>;
  /** The pages after one another, all of the snapshot that the first one opened. */
  listPages(request?: ListRequest, options?: CallOptions): AsyncIterable<VectorPage>;
  count(filter?: JsonObject, options?: CallOptions): Promise<number>;
  query(request: QueryRequest, options?: CallOptions): Promise<QueryReply>;
  /** The pages after one another, all of the snapshot that the first one opened. */
  queryPages(request: QueryRequest, options?: CallOptions): AsyncIterable<QueryReply>;
}

/** Throws SagittaClientError (`invalid_argument`) when `baseUrl` is not an HTTP address. */
export function createClient(options: TransportOptions): Client {
  const send = createTransport(options);

  const get = async <Body>(path: string, query: object, call?: CallOptions): Promise<Body> => {
    const request = { method: 'GET', path, query: { ...query }, mayRepeat: true } as const;
    return (await send<Body>({ ...request, signal: call?.signal })).body;
  };
  /** A POST that changes nothing. */
  const ask = async <Body>(path: string, body: object, call?: CallOptions): Promise<Body> => {
    const request = { method: 'POST', path, body, mayRepeat: true } as const;
    return (await send<Body>({ ...request, signal: call?.signal })).body;
  };
  const write = async <Body>(
    path: string,
    body: object | string,
    call: WriteOptions = {},
    query: { if_not_exists?: boolean } = {},
  ): Promise<Body> => {
    const headers = { 'idempotency-key': call.idempotencyKey ?? crypto.randomUUID() };
    const request = { method: 'POST', path, query, body, headers, mayRepeat: true } as const;
    return (await send<Body>({ ...request, signal: call.signal })).body;
  };
  /** PUT, PATCH and DELETE, whose effect depends on the method whether repeating it is harmless. */
  const change = async <Body>(
    method: 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    rest: { body?: object; headers?: Record<string, string>; mayRepeat: boolean },
    call?: CallOptions,
  ): Promise<Body> => (await send<Body>({ method, path, ...rest, signal: call?.signal })).body;

  const collections: Collections = {
    create: (input, call = {}) =>
      write('/collections', input, call, call.ifNotExists ? { if_not_exists: true } : {}),
    get: (id, call) => get(`/collections/${pathPart(id)}`, {}, call),
    list: (request = {}, call) => get('/collections', request, call),
    pages: (request = {}, call) =>
      pagesOf(request, (page) => collections.list(page as { cursor?: string }, call)),
    update: (id, body, call) =>
      change('PATCH', `/collections/${pathPart(id)}`, { body, mayRepeat: true }, call),
    // Not repeated: by then somebody may have made a new collection of that name.
    delete: (id, call) =>
      change('DELETE', `/collections/${pathPart(id)}`, { mayRepeat: false }, call),
  };

  /** A POST whose reply nobody can give again. */
  const once = async <Body>(path: string, body: object, call?: CallOptions): Promise<Body> => {
    const request = { method: 'POST', path, body, mayRepeat: false } as const;
    return (await send<Body>({ ...request, signal: call?.signal })).body;
  };
  const keys: Keys = {
    create: (input, call) => once('/keys', input, call),
    list: async (call) => {
      const reply = await get<{ keys: ApiKeyRecord[] }>('/keys', {}, call);
      return reply.keys;
    },
    get: (id, call) => get(`/keys/${pathPart(id)}`, {}, call),
    rotate: (id, request = {}, call) => once(`/keys/${pathPart(id)}/rotate`, request, call),
    revoke: (id, call) => change('DELETE', `/keys/${pathPart(id)}`, { mayRepeat: true }, call),
  };

  const collection = (id: string): Vectors => {
    const root = `/collections/${pathPart(id)}`;
    const vectors: Vectors = {
      upsert: (rows, call = {}) =>
        write(
          `${root}/vectors`,
          {
            vectors: rows.map((row) => ({ ...row, values: wireValues(row.values) })),
            ...(call.mode !== undefined && { mode: call.mode }),
          },
          call,
        ),
      upsertText: (rows, call = {}) => {
        const mode = call.mode === undefined ? '' : `,"mode":${JSON.stringify(call.mode)}`;
        return write(`${root}/vectors`, `{"vectors":[${rows.join(',')}]${mode}}`, call);
      },
      put: (vector, call) => {
        const body = { ...vector, values: wireValues(vector.values) };
        const path = `${root}/vectors/${pathPart(vector.id)}`;
        return change('PUT', path, { body, mayRepeat: true }, call);
      },
      patch: (vectorId, fields, call) =>
        change(
          'PATCH',
          `${root}/vectors/${pathPart(vectorId)}`,
          {
            body: {
              ...fields,
              ...(fields.values !== undefined && { values: wireValues(fields.values) }),
            },
            headers: call?.ifMatch === undefined ? {} : { 'if-match': call.ifMatch },
            // Under a condition, a second try would fail because the first one succeeded.
            mayRepeat: call?.ifMatch === undefined,
          },
          call,
        ),
      get: async (vectorId, include = {}, call) => {
        const { body, headers } = await send<StoredVector>({
          method: 'GET',
          path: `${root}/vectors/${pathPart(vectorId)}`,
          query: { ...include },
          mayRepeat: true,
          signal: call?.signal,
        });
        const etag = headers.get('etag');
        return etag === null ? body : { ...body, etag };
      },
      fetch: (ids, include = {}, call) => ask(`${root}/vectors/fetch`, { ids, ...include }, call),
      // Not repeated: by then somebody may have written a new vector of that id.
      delete: (vectorId, call) =>
        change('DELETE', `${root}/vectors/${pathPart(vectorId)}`, { mayRepeat: false }, call),
      deleteMany: (selection, call = {}) =>
        write(
          `${root}/vectors/delete`,
          { ...selection, ...(call.dryRun !== undefined && { dry_run: call.dryRun }) },
          call,
        ),
      list: ({ filter, ...request } = {}, call) =>
        get(
          `${root}/vectors`,
          { ...request, ...(filter !== undefined && { filter: JSON.stringify(filter) }) },
          call,
        ),
      listPages: (request = {}, call) => pagesOf(request, (page) => vectors.list(page, call)),
      count: async (filter, call) => {
        const body = filter === undefined ? {} : { filter };
        return (await ask<{ count: number }>(`${root}/count`, body, call)).count;
      },
      query: ({ vector, ...request }, call) =>
        ask(
          `${root}/query`,
          { ...(vector !== undefined && { vector: wireValues(vector) }), ...request },
          call,
        ),
      queryPages: (request, call) => pagesOf(request, (page) => vectors.query(page, call)),
    };
    return vectors;
  };

  return { limits: (call) => get('/limits', {}, call), collections, keys, collection };
}

/** A cursor carries all that the next page needs, so it is sent alone. */
async function* pagesOf<Request extends object, Page extends { next_cursor?: string }>(
  request: Request,
  load: (request: Request | { cursor: string }) => Promise<Page>,
): AsyncGenerator<Page> {
  let page = await load(request);
  yield page;
  while (page.next_cursor !== undefined && page.next_cursor !== '') {
    page = await load({ cursor: page.next_cursor });
    yield page;
  }
}

function wireValues(values: VectorValues): readonly number[] | string {
  return values instanceof Float32Array ? encodeValues(values) : values;
}

/** An id as one part of a path. Dots alone would walk the path, however they are encoded. */
function pathPart(id: string): string {
  if (id === '' || id === '.' || id === '..') {
    throw new SagittaClientError(
      'invalid_argument',
      `"${id}" cannot be a part of a URL; name it in a body instead (upsert, fetch, deleteMany)`,
    );
  }
  try {
    return encodeURIComponent(id);
  } catch {
    throw new SagittaClientError('invalid_argument', 'expected an id of whole characters');
  }
}
