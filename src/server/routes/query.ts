// Nearest-neighbour search in a collection that the path or the body names.

import type { z } from 'zod';
import {
  type ErrorCode,
  field,
  parameter,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import { checkQuery } from '../../database/query/query-issues.js';
import { EMBEDDING_ERRORS, embedQueries } from '../embedding/embed-rows.js';
import { readJsonBody } from '../ingest/parse-request.js';
import {
  type QueryBody as CollectionQuery,
  costOf,
  toQueryRequest,
} from '../ingest/query-request.js';
import { createReplyWriter } from '../replies/record-writer.js';
import type { RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import type { Schemas } from '../schemas/all.js';
import { phasesOf, SlowQueryLog, serverTiming } from '../telemetry/query-telemetry.js';
import { BODY_LAYOUT, type IssueLayout } from '../wire/problem.js';
import type { Properties } from '../wire/property-names.js';
import type { StoredReply } from '../wire/reply.js';
import { jsonReply } from '../wire/reply.js';
import { collectionToRead } from './collection-choice.js';

/** Members that may be in the query string instead of the body. */
const PAGE_MEMBERS = ['limit', 'offset', 'cursor'] as const;

/** How errors are located if the body has no page members. */
const NO_PAGE: IssueLayout = { ...BODY_LAYOUT, parameters: PAGE_MEMBERS };

type QueryPage = Properties<z.output<Schemas['query']['queryPageAnywhere']>>;
type QueryBody = Properties<z.output<Schemas['query']['queryAnywhere']>>;

export const QUERY_ERRORS: readonly ErrorCode[] = [
  'collection_not_found',
  'collection_unavailable',
  'vector_not_found',
  'dimension_mismatch',
  'invalid_vector',
  'invalid_filter',
  'limit_exceeded',
  'cursor_invalid',
  'cursor_mismatch',
  'cursor_expired',
  ...EMBEDDING_ERRORS,
];

export function queryRoutes(services: RouteServices): Route[] {
  const schemas = services.schemas.query;
  const handle = createAnswer(services);
  const touches = (request: RequestContext<QueryPage>, body: QueryBody) => {
    const { query: page } = request;
    const collection = body.collection ?? page.collection;
    const cursor = body.cursor ?? page.cursor;
    return [collectionToRead(services, request, { collection, cursor })];
  };
  const common = {
    method: 'POST',
    tag: 'Query',
    summary: 'Find the nearest vectors',
    reply: schemas.reply,
    sendsServerTiming: true,
  } as const;
  return [
    defineRoute({
      ...common,
      path: '/collections/{id}/query',
      operationId: 'queryCollection',
      access: { scope: 'vectors:read', on: 'path' },
      query: schemas.queryPage,
      body: schemas.query,
      errors: QUERY_ERRORS,
      parse: (request): Promise<QueryBody> =>
        readJsonBody(services, request, schemas.query, 'vector'),
      touches,
      handle,
    }),
    defineRoute({
      ...common,
      path: '/query',
      operationId: 'query',
      access: { scope: 'vectors:read', on: 'named' },
      description:
        "The collection is the body's `collection`, else `?collection=`, else the configured default collection.",
      query: schemas.queryPageAnywhere,
      body: schemas.queryAnywhere,
      errors: [...QUERY_ERRORS, 'collection_required'],
      parse: (request) => readJsonBody(services, request, schemas.queryAnywhere, 'vector'),
      touches,
      handle,
    }),
  ];
}

function createAnswer(
  services: RouteServices,
): (request: RequestContext<QueryPage>, body: QueryBody) => Promise<StoredReply> {
  const { database, embedder, limits } = services;
  const slowQueries = new SlowQueryLog(services);
  const writeReply = createReplyWriter(services.schemas.query.reply);
  return async (request, body) => {
    const page = request.query;
    const { id: collectionId } = request.touched[0]!;
    const isPage = PAGE_MEMBERS.some((name) => body[name] !== undefined);
    request.issueLayout = isPage
      ? { ...NO_PAGE, parameters: PAGE_MEMBERS.filter((name) => body[name] === undefined) }
      : NO_PAGE;
    const query = checkQuery(toQueryRequest(withPage(body, page)), limits);
    request.charge(costOf(query, limits));
    const { telemetry, signal } = request;
    const collection = database.collection(collectionId);
    const context = { embedder, collection, signal };
    const startMs = performance.now();
    const [embedded] = await embedQueries([query], context, (_, path) => field(...path));
    const endMs = performance.now();
    const embedMs = embedded === query ? undefined : endMs - startMs;
    if (embedMs !== undefined) telemetry.addPhases(() => [{ name: 'embed', startMs, endMs }]);
    const { reply, text } = await slowQueries.run(request, collectionId, query, {
      embedMs,
      async search() {
        const reserve = (bytes: number) => request.reserveWork(bytes);
        const { explain, ...found } = await collection.query(embedded!, { signal, reserve });
        return explain === undefined ? found : { ...found, explain: { ...explain, embedMs } };
      },
      async write(found) {
        telemetry.addPhases(() => phasesOf(found));
        const reserve = (characterCount: number) => request.reserveReply(characterCount);
        return await writeReply(found, reserve, found.valuesEncoding);
      },
    });
    const totalMs = performance.now() - telemetry.startedAtMs;
    return jsonReply(text, { 'server-timing': serverTiming(reply.timings, totalMs, embedMs) });
  };
}

/** The body with the page members of the query string. Throws if the two differ. */
function withPage(body: CollectionQuery, page: QueryPage): CollectionQuery {
  if (PAGE_MEMBERS.every((name) => page[name] === undefined)) return body;
  const issues: ValidationIssue[] = [];
  for (const name of PAGE_MEMBERS) {
    const inBody = body[name];
    const inQuery = page[name];
    if (inBody === undefined || inQuery === undefined || inBody === inQuery) continue;
    issues.push({
      location: parameter(name),
      code: 'invalid_request',
      detail: `The ${name} in the query string differs from the one in the body.`,
    });
  }
  if (issues.length > 0) throw validationError(issues);
  return {
    ...body,
    limit: body.limit ?? page.limit,
    offset: body.offset ?? page.offset,
    cursor: body.cursor ?? page.cursor,
  };
}
