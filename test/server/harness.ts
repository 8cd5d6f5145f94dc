// The application over a database in memory, and a way to call it that checks every reply against
// the OpenAPI document: a declared status, a declared code, a body of the declared shape without
// undeclared members, and a request id.

import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { systemClock } from '../../src/common/clock.js';
import { DEFAULT_LIMITS, type Limits } from '../../src/common/limits.js';
import { silentLogger } from '../../src/common/logger.js';
import { Collection } from '../../src/database/collection/collection.js';
import { Database } from '../../src/database/database.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { type AppOptions, createApp, routesOf } from '../../src/server/app.js';
import { Authenticator } from '../../src/server/auth/authenticator.js';
import { describeApi } from '../../src/server/openapi.js';
import { schemasOf } from '../../src/server/schemas/all.js';
import { createMemoryStore } from '../../src/storage/memory-store.js';
import { withResolvers } from '../support/waiting.js';
import { createFakeBackups } from './fake-backups.js';

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** The parsed body; undefined if there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies freely
  readonly json: any;
}

export interface CallOptions {
  /** Sent as JSON, or verbatim if it is text or bytes. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Hooks that run before steps of the database, with which a test delays a step or makes it fail. */
interface DatabaseHooks {
  /** Runs before each batch of queries of the engine, with the signal of the batch. */
  beforeSearch: (signal: AbortSignal | undefined) => Promise<void>;
  /** Runs before each commit of the store takes effect. */
  beforeCommit: () => Promise<void>;
}

export interface Service {
  readonly app: FastifyInstance;
  readonly database: Database;
  /** Hooks of the service's own database; without effect if a test passes another one. */
  readonly hooks: DatabaseHooks;
  /** The number of commits of the store. */
  readonly commitCount: number;
  call(method: string, url: string, options?: CallOptions): Promise<Reply>;
  /** Closes the application and its database. */
  close(): Promise<void>;
}

export type ServiceOptions = Omit<Partial<AppOptions>, 'database'> & {
  readonly database?: Database;
};

export async function createService(options: ServiceOptions = {}): Promise<Service> {
  let commitCount = 0;
  const hooks: DatabaseHooks = { beforeSearch: async () => {}, beforeCommit: async () => {} };
  const beforeCommit = () => {
    commitCount++;
    return hooks.beforeCommit();
  };
  const limits = options.limits ?? DEFAULT_LIMITS;
  const database = options.database ?? (await openDatabase({ limits, hooks, beforeCommit }));
  const app = await createApp({
    database,
    backups: createFakeBackups(),
    pool: createInlinePool(),
    defaultCollection: null,
    logger: silentLogger,
    metrics: createMetrics(),
    slowQueryMs: 1_000,
    authenticator: new Authenticator(),
    // A test must not fail because the machine is busy.
    eventLoop: { begin() {}, end() {}, delayMs: 0 },
    ...options,
    limits,
  });
  const document = documentOf(app, limits);
  return {
    app,
    database,
    hooks,
    get commitCount() {
      return commitCount;
    },
    async call(method, url, { body, headers = {} } = {}) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array;
      const reply = await app.inject({
        method: method as 'GET',
        url,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined
          ? {}
          : { payload: isRaw ? Buffer.from(body) : JSON.stringify(body) }),
      });
      const isJson =
        /[/+]json\b/.test(String(reply.headers['content-type'] ?? '')) && reply.body !== '';
      const found: Reply = {
        status: reply.statusCode,
        headers: reply.headers as Record<string, string | undefined>,
        text: reply.body,
        json: isJson ? JSON.parse(reply.body) : undefined,
      };
      checkAgainst(document, method, url, found);
      return found;
    },
    async close() {
      await app.close();
      await database.close();
    },
  };
}

/** A database in memory that calls the hooks. */
async function openDatabase(options: {
  limits: Limits;
  hooks: DatabaseHooks;
  beforeCommit: () => Promise<void>;
}): Promise<Database> {
  const { limits, hooks, beforeCommit } = options;
  const pool = createInlinePool();
  const reference = createReferenceEngine({ pool });
  const engine: Engine = {
    name: reference.name,
    rowEncoder: reference.rowEncoder,
    async search(queries, { signal } = {}) {
      await hooks.beforeSearch(signal);
      return reference.search(queries, signal === undefined ? {} : { signal });
    },
    unload: (key) => reference.unload(key),
    bytesUsed: (key) => reference.bytesUsed(key),
    close: () => reference.close(),
  };
  const database = await Database.open({
    store: createMemoryStore({ beforeCommit }),
    engine,
    engineReason: 'test',
    pool,
    limits,
    clock: systemClock,
    logger: silentLogger,
  });
  await database.loaded;
  return database;
}

/** Starts counting pinned snapshots of all databases of the process. */
export function countPins(): { readonly count: number } {
  const pins = { count: 0 };
  const pin = Collection.prototype.pin;
  Collection.prototype.pin = function (sequence) {
    const unpin = pin.call(this, sequence);
    let isPinned = true;
    pins.count++;
    return () => {
      unpin();
      if (isPinned) pins.count--;
      isPinned = false;
    };
  };
  return pins;
}

/** Three vectors of dimension 3 under the dot product, in a collection `c`. */
export async function createFilledService(options: ServiceOptions = {}): Promise<Service> {
  const service = await createService(options);
  await service.call('POST', '/collections', { body: { id: 'c', dimension: 3, metric: 'dot' } });
  const vectors = [
    { id: 'a', values: [1, 0, 0], metadata: { year: 2020, kind: 'x' } },
    { id: 'b', values: [0, 1, 0], metadata: { year: 2021, kind: 'x' } },
    { id: 'd', values: [1, 1, 0.5], metadata: { year: 2022, kind: 'y' } },
  ];
  await service.call('POST', '/collections/c/vectors', { body: { vectors } });
  return service;
}

/** Makes the searches of the service wait until they are released. */
export function holdQueries(service: Service): { arrived: Promise<void>; release: () => void } {
  const { promise: arrived, resolve: arrive } = withResolvers();
  const { promise: gate, resolve: release } = withResolvers();
  service.hooks.beforeSearch = () => {
    arrive();
    return gate;
  };
  return { arrived, release };
}

/** Asserts that the call fails with the code, and returns the reply. */
export async function expectProblem(
  calling: Promise<Reply>,
  status: number,
  code: string,
  pointer?: string,
): Promise<Reply> {
  const reply = await calling;
  assert.equal(`${reply.status} ${reply.json?.code}`, `${status} ${code}`, reply.text);
  if (pointer !== undefined) {
    const pointers = (reply.json.errors ?? []).map((item: { pointer: string }) => item.pointer);
    assert.ok(pointers.includes(pointer), `expected ${pointer} among ${pointers}`);
  }
  return reply;
}

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}
interface Operation {
  readonly responses: Readonly<
    Record<string, { description: string; content?: Record<string, { schema: Schema }> }>
  >;
}
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly examples: Readonly<Record<string, { readonly value: unknown }>>;
  };
}

/** Codes of failures that happen before a route is found. */
const CODES_WITHOUT_ROUTE = ['route_not_found', 'method_not_allowed'];

function checkAgainst(document: OpenApi, method: string, url: string, reply: Reply): void {
  const place = `${method} ${url} → ${reply.status} ${reply.text.slice(0, 300)}`;
  assert.ok(reply.headers['x-request-id'], `no request id: ${place}`);
  if (CODES_WITHOUT_ROUTE.includes(reply.json?.code)) return;
  const path = (url.split('?')[0] ?? '').replace(/^\/v1(?=\/)/, '');
  const operation = findPath(document, path)?.[method.toLowerCase()];
  if (operation === undefined) return;
  const response = operation.responses[reply.status];
  assert.ok(response, `a status that is not described: ${place}`);
  const type = (reply.headers['content-type'] ?? '').split(';')[0] ?? '';
  const media = Object.entries(response.content ?? {}).find(([name]) => name.startsWith(type));
  if (media === undefined) {
    assert.equal(reply.text, '', `a body that is not described: ${place}`);
    return;
  }
  if (type === 'application/problem+json') {
    assert.ok(
      response.description.includes(`\`${reply.json.code}\``),
      `a code that is not described: ${place}`,
    );
    assert.equal(reply.json.status, reply.status);
    // A replay is identical to the reply of the first request.
    if (reply.headers['idempotent-replayed'] === undefined) {
      assert.equal(reply.json.request_id, reply.headers['x-request-id']);
    }
  }
  if (reply.json !== undefined) checkBody(document, media[1].schema, reply.json, place);
}

const pathPatterns = new WeakMap<OpenApi, readonly (readonly [RegExp, string])[]>();

function findPath(document: OpenApi, path: string) {
  const exact = document.paths[path];
  if (exact !== undefined) return exact;
  const patterns =
    pathPatterns.get(document) ??
    Object.keys(document.paths).map(
      (template) => [new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`), template] as const,
    );
  pathPatterns.set(document, patterns);
  const found = patterns.find(([pattern]) => pattern.test(path));
  return found === undefined ? undefined : document.paths[found[1]];
}

const documents = new Map<string, OpenApi>();

/** Limits of time, rates, memory and connections, which do not appear in schemas. */
export const isBeyondDocument = (name: string) =>
  /(Ms|Rate|Burst|InFlight|Connections|PerAddress)Max$/.test(name);

/**
 * The document that the application serves (openapi.test.ts). It depends only on the routes and some limits, and takes
 * 100 ms to generate, so that services with the same ones share it.
 */
export function documentOf(app: FastifyInstance, limits: Limits): OpenApi {
  const routes = routesOf(app).filter(({ isInternal }) => isInternal !== true);
  const key = JSON.stringify([
    Object.entries(limits).filter(([name]) => !isBeyondDocument(name)),
    routes.map(({ method, path }) => `${method} ${path}`),
  ]);
  const known = documents.get(key);
  if (known !== undefined) return known;
  const made = JSON.parse(JSON.stringify(describeApi(routes, schemasOf(limits)))) as OpenApi;
  documents.set(key, made);
  return made;
}

const checkersOfDocument = new WeakMap<OpenApi, Map<string, z.ZodType>>();
/** Validators by the text of the schema and of all schemas that it refers to, which most documents share. */
const checkers = new Map<string, z.ZodType>();

/** Converts a schema of the document to a zod schema. */
export function schemaOf(document: OpenApi, schema: Schema): z.ZodType {
  const own = checkersOfDocument.get(document) ?? new Map<string, z.ZodType>();
  checkersOfDocument.set(document, own);
  const text = JSON.stringify(schema);
  const known = own.get(text);
  if (known !== undefined) return known;
  const $defs: Record<string, Schema> = {};
  collectReferences(document, text, $defs);
  const whole = JSON.stringify({ ...schema, $defs }).replaceAll(COMPONENT, '#/$defs/');
  const made = checkers.get(whole) ?? z.fromJSONSchema(JSON.parse(whole));
  checkers.set(whole, made);
  own.set(text, made);
  return made;
}

const COMPONENT = '#/components/schemas/';

/** Adds the schemas that a text refers to, transitively. */
function collectReferences(document: OpenApi, text: string, found: Record<string, Schema>): void {
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (name! in found) continue;
    found[name!] = document.components.schemas[name!]!;
    collectReferences(document, JSON.stringify(found[name!]), found);
  }
}

function checkBody(document: OpenApi, schema: Schema, value: unknown, place: string): void {
  const result = schemaOf(document, schema).safeParse(value);
  assert.ok(result.success, `${place}\n${JSON.stringify(result.error?.issues, null, 1)}`);
  refuseUndescribed(document, schema, value, place);
}

function refuseUndescribed(document: OpenApi, schema: Schema, value: unknown, place: string): void {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(COMPONENT.length);
    refuseUndescribed(document, document.components.schemas[name]!, value, place);
    return;
  }
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const element of value) refuseUndescribed(document, schema.items, element, place);
  } else if (typeof value === 'object' && value !== null && schema.properties !== undefined) {
    for (const [name, member] of Object.entries(value)) {
      const described = schema.properties[name];
      assert.ok(described, `the member ${name} is not described: ${place}`);
      refuseUndescribed(document, described, member, place);
    }
  }
}
