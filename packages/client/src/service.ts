// The methods for the server as a whole: collections, aliases, API keys, backups, limits and probes.

import type { DeclaredTypes, JsonObject } from '../../../src/common/types.js';
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
  AliasPage,
  AliasRecord,
  ApiKeyInput,
  ApiKeyRecord,
  ApiKeyWithSecret,
  AuditEvent,
  AuditPage,
  AuditRequest,
  BackupRecord,
  Cluster,
  ClusterFiles,
  ClusterNode,
  CollectionClone,
  CollectionDigest,
  CollectionInput,
  CollectionPage,
  CollectionRecord,
  EmbeddingInput,
  Limits,
  NamedVectorInput,
  PrincipalRecord,
  Readiness,
  SegmentPage,
  SegmentRecord,
  ServiceInfo,
  Traffic,
} from './types.js';

export interface Collections {
  /** Creates a collection. Throws `collection_exists`, unless `ifNotExists` is set and dimension and metric agree. */
  create(
    input: CollectionInput,
    options?: WriteOptions & { ifNotExists?: boolean },
  ): Promise<CollectionRecord>;
  /** One collection. Throws `collection_not_found`. */
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
  /**
   * A digest of a collection's contents at a sequence, by default the last one; with `all_nodes` also the digests of the
   * other nodes of a cluster. It reads all rows, and there is no timeout unless `timeoutMs` is given.
   */
  digest(
    id: string,
    request?: { sequence?: number; all_nodes?: boolean },
    options?: CallOptions,
  ): Promise<CollectionDigest>;
  /** One page of segments with their rows, memory and files, ordered by number. */
  segments(
    id: string,
    request?: { limit?: number; cursor?: string },
    options?: CallOptions,
  ): Promise<SegmentPage>;
  /** Every segment, one at a time. `limit` is the page size. */
  allSegments(
    id: string,
    request?: { limit?: number },
    options?: CallOptions,
  ): AsyncIterable<SegmentRecord>;
  /**
   * Absent members keep their values; `labels` replaces all labels. A change that drops vectors is not retried when the
   * connection breaks, because the second attempt would not find them.
   */
  update(
    id: string,
    change: {
      description?: string | null;
      labels?: Readonly<Record<string, string>>;
      ttl_seconds?: number | null;
      /** Replaces the schema. Throws `invalid_metadata` when a vector does not fit. */
      schema?: DeclaredTypes | null;
      embed?: 'builtin' | EmbeddingInput | null;
      /** How many nodes of a cluster hold the collection; null for all. */
      replication_factor?: number | null;
      /** Named vectors to add, or null to drop them; the others stay. */
      vectors?: Readonly<Record<string, NamedVectorInput | null>>;
      /** Sparse vectors to add, or null to drop them. */
      sparse_vectors?: Readonly<Record<string, Readonly<Record<string, never>> | null>>;
    },
    options?: CallOptions,
  ): Promise<CollectionRecord>;
  /**
   * Copies the collection; resolves when the copy can be queried. There is no timeout unless
   * `timeoutMs` is given. Throws `collection_exists`.
   */
  clone(id: string, input?: CollectionClone, options?: WriteOptions): Promise<CollectionRecord>;
  /** Gives the collection another id. Throws `collection_exists`. */
  rename(id: string, newId: string, options?: WriteOptions): Promise<CollectionRecord>;
  /**
   * Moves the collection between nodes of a cluster. The record has a `move` member until the move is done. Not
   * retried when the connection breaks; `get` shows the outcome. Throws `node_not_found`.
   */
  move(
    id: string,
    nodes: { from: string; to: string },
    options?: CallOptions,
  ): Promise<CollectionRecord>;
  /**
   * Deletes the collection with all its vectors. Throws `collection_aliased` while it has aliases. Not
   * retried when the connection breaks, since a new collection with the same id may exist by then; check
   * with `get` after a `network_error`.
   */
  delete(
    id: string,
    options?: CallOptions,
  ): Promise<{ id: string; deleted: true; vector_count: number }>;
}

/** Aliases, which can be used wherever the id of a collection can. */
export interface Aliases {
  /** Creates the alias or points it to another collection. Throws `collection_not_found`. */
  set(name: string, collection: string, options?: CallOptions): Promise<AliasRecord>;
  /** Sets several aliases atomically, and deletes those whose collection is null. */
  change(
    aliases: Readonly<Record<string, string | null>>,
    options?: CallOptions,
  ): Promise<readonly AliasRecord[]>;
  /** One alias. Throws `alias_not_found`. */
  get(name: string, options?: CallOptions): Promise<AliasRecord>;
  /** One page, ordered by name. */
  list(request?: { limit?: number; cursor?: string }, options?: CallOptions): Promise<AliasPage>;
  /** Every alias, ordered by name. `limit` is the page size. */
  all(request?: { limit?: number }, options?: CallOptions): AsyncIterable<AliasRecord>;
  /** Deletes the alias; the collection remains. Throws `alias_not_found`. */
  delete(name: string, options?: CallOptions): Promise<{ name: string; deleted: true }>;
}

/** API keys; every method requires the scope `admin`. */
export interface Keys {
  /** Creates a key. Not retried: if the reply is lost, revoke the key, because nobody knows its secret. */
  create(input: ApiKeyInput, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** All keys, including expired and revoked ones. */
  list(options?: CallOptions): Promise<readonly ApiKeyRecord[]>;
  /** One key, without its secret. */
  get(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
  /** Replaces the secret; the old one stays valid for `grace_seconds` (default 0). Not retried. */
  rotate(
    id: string,
    request?: { grace_seconds?: number },
    options?: CallOptions,
  ): Promise<ApiKeyWithSecret>;
  /** Revokes the key immediately. */
  revoke(id: string, options?: CallOptions): Promise<ApiKeyRecord>;
}

/** Backups; every method requires the scope `admin` and a server with a backup directory. */
export interface Backups {
  /**
   * Creates a backup; resolves when it is on disk. There is no timeout unless `timeoutMs` is given. Not retried:
   * after a `network_error`, `list` shows whether the backup exists.
   */
  create(request?: { name?: string }, options?: CallOptions): Promise<BackupRecord>;
  /** All backups in the directory. */
  list(options?: CallOptions): Promise<readonly BackupRecord[]>;
}

/** Audit events, newest first; every method requires the scope `admin`. */
export interface Audit {
  /** One page; a cursor is sent alone. */
  list(
    request?: AuditRequest | { readonly cursor: string },
    options?: CallOptions,
  ): Promise<AuditPage>;
  /** All events, a page at a time. */
  pages(request?: AuditRequest, options?: CallOptions): AsyncIterable<AuditPage>;
  /** All events, one at a time. */
  all(request?: AuditRequest, options?: CallOptions): AsyncIterable<AuditEvent>;
}

/** Methods for operators. */
export interface Service {
  /** A description of the service, with links relative to its address. */
  info(options?: CallOptions): Promise<ServiceInfo>;
  /** Resolves if the process responds, and throws otherwise. */
  live(options?: CallOptions): Promise<{ readonly status: 'live' }>;
  /**
   * The readiness of the server, with `for: 'write'` also for writes; a server that is not ready is not an error here.
   */
  ready(request?: { for?: 'write' }, options?: CallOptions): Promise<Readiness>;
  /** The cluster as one of its nodes sees it. Requires the scope `metrics:read` where keys are required. */
  cluster(options?: CallOptions): Promise<Cluster>;
  /**
   * The requests, the queries of each collection and the slowest queries of the last minutes, by default of an hour, of
   * the node that answers. Requires the scope `metrics:read` where keys are required.
   */
  traffic(request?: { minutes?: number }, options?: CallOptions): Promise<Traffic>;
  /** Checks the logs and the shared files of the cluster; without a timeout. Requires the scope `admin`. */
  verifyFiles(options?: CallOptions): Promise<ClusterFiles>;
  /**
   * Prepares a node of the cluster for a shutdown: other nodes take over. `cluster` shows when the node is drained.
   * Requires the scope `admin`. Throws `node_not_found`.
   */
  drain(node: string, options?: CallOptions): Promise<ClusterNode>;
  /** Undoes `drain`. Requires the scope `admin`. Throws `node_not_found`. */
  undrain(node: string, options?: CallOptions): Promise<ClusterNode>;
  /** Metrics in the Prometheus text format. Requires the scope `metrics:read` where keys are required. */
  metrics(options?: CallOptions): Promise<string>;
  /** The OpenAPI document. */
  openApi(options?: CallOptions): Promise<JsonObject>;
}

export interface ServiceMethods {
  /** Every bound of the server, by name. */
  limits(options?: CallOptions): Promise<Limits>;
  /** Who the caller is, and what its credential permits. */
  principal(options?: CallOptions): Promise<PrincipalRecord>;
  readonly collections: Collections;
  readonly aliases: Aliases;
  readonly keys: Keys;
  readonly backups: Backups;
  readonly audit: Audit;
  readonly service: Service;
}

function hasNull(members: object | undefined): boolean {
  return Object.values(members ?? {}).includes(null);
}

export function createServiceMethods(requests: Requests): ServiceMethods {
  const { transport, get, postOnce, change } = requests;
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

  const audit: Audit = {
    list: (request = {}, options) => get('/audit', request, options),
    pages: (request = {}, options) => pagesOf(request, (page) => audit.list(page, options)),
    all: (request, options) => itemsOf(audit.pages(request, options), (page) => page.events),
  };

  const probe = (path: string, options: CallOptions | undefined) =>
    ({
      method: 'GET',
      path,
      isOperational: true,
      isIdempotent: true,
      ...callOptions(options),
    }) as const;
  const drainOf = (node: string) => `/cluster/nodes/${pathSegment(node)}/drain`;
  const service: Service = {
    info: async (options) => (await transport.send<ServiceInfo>(probe('/', options))).body,
    live: async (options) =>
      (await transport.send<{ status: 'live' }>(probe('/livez', options))).body,
    ready: async (request = {}, options) => {
      const path = request.for === 'write' ? '/readyz?for=write' : '/readyz';
      return (await transport.send<Readiness>({ ...probe(path, options), alsoStatus: 503 })).body;
    },
    cluster: (options) => get<Cluster>('/cluster', {}, options),
    traffic: (request = {}, options) => get<Traffic>('/traffic', request, options),
    verifyFiles: (options) =>
      get<ClusterFiles>('/cluster/files', {}, { timeoutMs: Number.POSITIVE_INFINITY, ...options }),
    drain: (node, options) => change('PUT', drainOf(node), { isIdempotent: true }, options),
    undrain: (node, options) => change('DELETE', drainOf(node), { isIdempotent: true }, options),
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

  const limits = (options?: CallOptions) => get<Limits>('/limits', {}, options);
  const principal = (options?: CallOptions) => get<PrincipalRecord>('/principal', {}, options);
  return {
    limits,
    principal,
    collections: createCollections(requests),
    aliases: createAliases(requests),
    keys,
    backups,
    audit,
    service,
  };
}

function createCollections({ get, write, change }: Requests): Collections {
  const collections: Collections = {
    async create(input, { ifNotExists, ...options } = {}) {
      const query = ifNotExists ? { if_not_exists: true } : {};
      const names = ['ifNotExists'];
      return (await write<CollectionRecord>('/collections', input, options, query, names)).body;
    },
    get: (id, options) => get(`/collections/${pathSegment(id)}`, {}, options),
    list: (request = {}, options) => get('/collections', request, options),
    pages: (request = {}, options) => pagesOf(request, (page) => collections.list(page, options)),
    all: (request, options) =>
      itemsOf(collections.pages(request, options), (page) => page.collections),
    digest: (id, request = {}, options) =>
      get(`/collections/${pathSegment(id)}/digest`, request, {
        timeoutMs: Number.POSITIVE_INFINITY,
        ...options,
      }),
    segments: (id, request = {}, options) =>
      get(`/collections/${pathSegment(id)}/segments`, request, options),
    allSegments: (id, request = {}, options) =>
      itemsOf(
        pagesOf(request, (page) => collections.segments(id, page, options)),
        (page) => page.segments,
      ),
    update: (id, body, options) => {
      const isIdempotent = ![body.vectors, body.sparse_vectors].some(hasNull);
      return change('PATCH', `/collections/${pathSegment(id)}`, { body, isIdempotent }, options);
    },
    async clone(id, input = {}, options = {}) {
      const path = `/collections/${pathSegment(id)}/clone`;
      const patient = { timeoutMs: Number.POSITIVE_INFINITY, ...options };
      return (await write<CollectionRecord>(path, input, patient)).body;
    },
    move: (id, nodes, options) =>
      change(
        'POST',
        `/collections/${pathSegment(id)}/move`,
        { body: nodes, isIdempotent: false },
        options,
      ),
    async rename(id, newId, options = {}) {
      const path = `/collections/${pathSegment(id)}/rename`;
      return (await write<CollectionRecord>(path, { id: newId }, options)).body;
    },
    delete: (id, options) =>
      change('DELETE', `/collections/${pathSegment(id)}`, { isIdempotent: false }, options),
  };
  return collections;
}

function createAliases({ get, read, change }: Requests): Aliases {
  const aliases: Aliases = {
    set: (name, collection, options) =>
      change(
        'PUT',
        `/aliases/${pathSegment(name)}`,
        { body: { collection }, isIdempotent: true },
        options,
      ),
    async change(targets, options) {
      const changes = Object.entries(targets).map(([name, collection]) => ({ name, collection }));
      const body = { aliases: changes };
      return (await read<{ aliases: AliasRecord[] }>('/aliases', body, options)).aliases;
    },
    get: (name, options) => get(`/aliases/${pathSegment(name)}`, {}, options),
    list: (request = {}, options) => get('/aliases', request, options),
    all: (request = {}, options) =>
      itemsOf(
        pagesOf(request, (page) => aliases.list(page, options)),
        (page) => page.aliases,
      ),
    delete: (name, options) =>
      change('DELETE', `/aliases/${pathSegment(name)}`, { isIdempotent: false }, options),
  };
  return aliases;
}
