// The methods for the server as a whole: collections, API keys, backups, limits and probes.

import type { JsonObject } from '../common/types.js';
import {
  type CallOptions,
  callOptions,
  itemsOf,
  pagesOf,
  pathSegment,
  type Requests,
  type WriteOptions,
} from './requests.js';
import type {
  ApiKeyInput,
  ApiKeyRecord,
  ApiKeyWithSecret,
  BackupRecord,
  CollectionInput,
  CollectionPage,
  CollectionRecord,
  Limits,
  Readiness,
} from './types.js';

export interface Collections {
  /** Throws `collection_exists`, unless `ifNotExists` and dimension and metric agree. */
  create(
    input: CollectionInput,
    options?: WriteOptions & { ifNotExists?: boolean },
  ): Promise<CollectionRecord>;
  /** Throws `collection_not_found`. */
  get(id: string, options?: CallOptions): Promise<CollectionRecord>;
  /** One page, in id order. */
  list(
    request?: { limit?: number; cursor?: string },
    options?: CallOptions,
  ): Promise<CollectionPage>;
  /** Every collection, in id order, a page at a time. */
  pages(request?: { limit?: number }, options?: CallOptions): AsyncIterable<CollectionPage>;
  /** Every collection, in id order, one at a time. `limit` is the page size. */
  all(request?: { limit?: number }, options?: CallOptions): AsyncIterable<CollectionRecord>;
  /** Absent members keep their values; `labels` replaces all labels. */
  update(
    id: string,
    change: { description?: string | null; labels?: Readonly<Record<string, string>> },
    options?: CallOptions,
  ): Promise<CollectionRecord>;
  /**
   * Deletes the collection with all its vectors. Not retried when the connection breaks, since a new
   * collection of the same id may exist by then. After a `network_error`, check with `get`.
   */
  delete(
    id: string,
    options?: CallOptions,
  ): Promise<{ id: string; deleted: true; vector_count: number }>;
}

/** API keys; every method requires the scope `admin`. */
export interface Keys {
  /** Not retried: if the reply is lost, a key exists whose secret nobody knows; revoke it. */
  create(input: ApiKeyInput, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** All keys, including expired and revoked ones. */
  list(options?: CallOptions): Promise<readonly ApiKeyRecord[]>;
  get(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
  /** Replaces the secret; the old one stays valid for `grace_seconds` (0). Not retried. */
  rotate(
    id: string,
    request?: { grace_seconds?: number },
    options?: CallOptions,
  ): Promise<ApiKeyWithSecret>;
  revoke(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
}

/** Backups; every method requires the scope `admin` and a server with a backup directory. */
export interface Backups {
  /**
   * Resolves when the backup is on disk; there is no timeout unless `timeoutMs` is given. Not retried:
   * after a `network_error`, `list` shows whether the backup was created.
   */
  create(request?: { name?: string }, options?: CallOptions): Promise<BackupRecord>;
  list(options?: CallOptions): Promise<readonly BackupRecord[]>;
}

/** Methods for operators. */
export interface Service {
  /** Resolves when the process responds, else throws. */
  live(options?: CallOptions): Promise<{ readonly status: 'live' }>;
  /** The readiness of the server; starting and stopping are not errors here. */
  ready(options?: CallOptions): Promise<Readiness>;
  /** Metrics in the Prometheus text format. Requires the scope `metrics:read` where keys are required. */
  metrics(options?: CallOptions): Promise<string>;
  /** The OpenAPI document. */
  openApi(options?: CallOptions): Promise<JsonObject>;
}

export interface ServiceMethods {
  limits(options?: CallOptions): Promise<Limits>;
  readonly collections: Collections;
  readonly keys: Keys;
  readonly backups: Backups;
  readonly service: Service;
}

export function createServiceMethods(requests: Requests): ServiceMethods {
  const { transport, get, postOnce, change } = requests;
  const collections: Collections = {
    async create(input, options = {}) {
      const query = options.ifNotExists ? { if_not_exists: true } : {};
      return (await requests.write<CollectionRecord>('/collections', input, options, query)).body;
    },
    get: (id, options) => get(`/collections/${pathSegment(id)}`, {}, options),
    list: (request = {}, options) => get('/collections', request, options),
    pages: (request = {}, options) => pagesOf(request, (page) => collections.list(page, options)),
    all: (request, options) =>
      itemsOf(collections.pages(request, options), (page) => page.collections),
    update: (id, body, options) =>
      change('PATCH', `/collections/${pathSegment(id)}`, { body, isIdempotent: true }, options),
    delete: (id, options) =>
      change('DELETE', `/collections/${pathSegment(id)}`, { isIdempotent: false }, options),
  };

  const keys: Keys = {
    create: (input, options) => postOnce('/keys', input, options),
    list: async (options) => (await get<{ keys: ApiKeyRecord[] }>('/keys', {}, options)).keys,
    get: (id, options) => get(`/keys/${pathSegment(id)}`, {}, options),
    rotate: (id, request = {}, options) =>
      postOnce(`/keys/${pathSegment(id)}/rotate`, request, options),
    revoke: (id, options) =>
      change('DELETE', `/keys/${pathSegment(id)}`, { isIdempotent: true }, options),
  };

  const backups: Backups = {
    create: (request = {}, options) =>
      postOnce('/backups', request, { timeoutMs: Number.POSITIVE_INFINITY, ...options }),
    list: async (options) =>
      (await get<{ backups: BackupRecord[] }>('/backups', {}, options)).backups,
  };

  const probe = (path: string, options: CallOptions | undefined) =>
    ({
      method: 'GET',
      path,
      isOperational: true,
      isIdempotent: true,
      ...callOptions(options),
    }) as const;
  const service: Service = {
    live: async (options) =>
      (await transport.send<{ status: 'live' }>(probe('/livez', options))).body,
    ready: async (options) =>
      (await transport.send<Readiness>({ ...probe('/readyz', options), alsoStatus: 503 })).body,
    metrics: async (options) =>
      (
        await transport.sendForText({
          ...probe('/metrics', options),
          headers: { accept: 'text/plain, */*' },
        })
      ).body,
    openApi: async (options) =>
      (await transport.send<JsonObject>(probe('/openapi.json', options))).body,
  };

  return { limits: (options) => get('/limits', {}, options), collections, keys, backups, service };
}
