// What concerns the service as a whole: collections, API keys, backups, bounds and probes.

import type { JsonObject } from '../common/types.js';
import type { Calls } from './calls.js';
import { type CallOptions, callOf, pathPart, type WriteOptions } from './options.js';
import { itemsOf, pagesOf } from './pages.js';
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
  /** Every collection, in id order, one at a time. `limit` is how many are asked for at once. */
  all(request?: { limit?: number }, options?: CallOptions): AsyncIterable<CollectionRecord>;
  /** What is absent stays; `labels` replaces all labels. */
  update(
    id: string,
    change: { description?: string | null; labels?: Readonly<Record<string, string>> },
    options?: CallOptions,
  ): Promise<CollectionRecord>;
  /**
   * With all of its vectors. Not sent again when the connection breaks: by then somebody may have
   * made a new collection of that id. After a `network_error`, `get` tells whether it is gone.
   */
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

/** Backups; all of it needs the scope `admin`, and a service that keeps backups. */
export interface Backups {
  /**
   * Returns when the backup is on disk, however long that takes, unless `timeoutMs` is given. Sent
   * once: after a `network_error` the list shows whether it was made all the same.
   */
  create(request?: { name?: string }, options?: CallOptions): Promise<BackupRecord>;
  list(options?: CallOptions): Promise<readonly BackupRecord[]>;
}

/** For those who run the service. */
export interface Service {
  /** Whether the process answers at all; throws when it does not. */
  live(options?: CallOptions): Promise<{ readonly status: 'live' }>;
  /** Also of a service that is starting or stopping, which is no error here. */
  ready(options?: CallOptions): Promise<Readiness>;
  /** In the text format of Prometheus. Needs the scope `metrics:read` where keys are needed. */
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

export function createServiceMethods(calls: Calls): ServiceMethods {
  const { transport, get, once, change } = calls;
  const collections: Collections = {
    async create(input, call = {}) {
      const query = call.ifNotExists ? { if_not_exists: true } : {};
      return (await calls.write<CollectionRecord>('/collections', input, call, query)).body;
    },
    get: (id, call) => get(`/collections/${pathPart(id)}`, {}, call),
    list: (request = {}, call) => get('/collections', request, call),
    pages: (request = {}, call) => pagesOf(request, (page) => collections.list(page, call)),
    all: (request, call) => itemsOf(collections.pages(request, call), (page) => page.collections),
    update: (id, body, call) =>
      change('PATCH', `/collections/${pathPart(id)}`, { body, mayRepeat: true }, call),
    delete: (id, call) =>
      change('DELETE', `/collections/${pathPart(id)}`, { mayRepeat: false }, call),
  };

  const keys: Keys = {
    create: (input, call) => once('/keys', input, call),
    list: async (call) => (await get<{ keys: ApiKeyRecord[] }>('/keys', {}, call)).keys,
    get: (id, call) => get(`/keys/${pathPart(id)}`, {}, call),
    rotate: (id, request = {}, call) => once(`/keys/${pathPart(id)}/rotate`, request, call),
    revoke: (id, call) => change('DELETE', `/keys/${pathPart(id)}`, { mayRepeat: true }, call),
  };

  const backups: Backups = {
    create: (request = {}, call) =>
      once('/backups', request, { timeoutMs: Number.POSITIVE_INFINITY, ...call }),
    list: async (call) => (await get<{ backups: BackupRecord[] }>('/backups', {}, call)).backups,
  };

  const probe = (path: string, call: CallOptions | undefined) =>
    ({ method: 'GET', path, isOperational: true, mayRepeat: true, ...callOf(call) }) as const;
  const service: Service = {
    live: async (call) => (await transport.send<{ status: 'live' }>(probe('/livez', call))).body,
    ready: async (call) =>
      (await transport.send<Readiness>({ ...probe('/readyz', call), alsoStatus: 503 })).body,
    metrics: async (call) =>
      (
        await transport.sendForText({
          ...probe('/metrics', call),
          headers: { accept: 'text/plain, */*' },
        })
      ).body,
    openApi: async (call) => (await transport.send<JsonObject>(probe('/openapi.json', call))).body,
  };

  return { limits: (call) => get('/limits', {}, call), collections, keys, backups, service };
}
