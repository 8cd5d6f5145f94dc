// Nearest-neighbour search, in a collection that the path names or in one that the body names.

import type { z } from 'zod';
import {
  type ErrorCode,
  field,
  parameter,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import { checkQuery } from '../../database/query/query-issues.js';
import { chooseCollection, collectionInPath } from '../collection-choice.js';
import { EMBEDDING_ERRORS, embedQueries } from '../embedding/embed-rows.js';
import { readJsonBody } from '../ingest/parse-request.js';
import { costOf, type QueryBody, toQueryRequest } from '../ingest/query-request.js';
import { BODY_LAYOUT } from '../problem.js';
import { createPageWriter } from '../replies/record-writer.js';
import type { StoredReply } from '../replies/reply.js';
import { jsonReply } from '../replies/reply.js';
import type { RequestContext } from '../request-context.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';
import type { Schemas } from '../schemas/all.js';
import { phasesOf, SlowQueryLog, serverTiming } from '../telemetry/query-telemetry.js';
import type { Properties } from '../wire-names.js';

/** The members that may be in the query string instead of the body. */
const PAGE_MEMBERS = ['limit', 'offset', 'cursor'] as const;

type QueryPage = Properties<z.output<Schemas['query']['queryPage']>>;

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

type Answer = (
  request: RequestContext<QueryPage>,
  collectionId: string,
  body: QueryBody,
) => Promise<StoredReply>;

export function queryRoutes(services: RouteServices): Route[] {
  const answer = createAnswer(services);
  return [queryInCollection(services, answer), queryAnywhere(services, answer)];
}

function queryInCollection(services: RouteServices, answer: Answer): Route {
  const schemas = services.schemas.query;
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/query',
    operationId: 'queryCollection',
    tag: 'Query',
    summary: 'Find the nearest vectors',
    access: { scope: 'vectors:read', on: 'path' },
    query: schemas.queryPage,
    body: schemas.query,
    reply: schemas.reply,
    sendsServerTiming: true,
    errors: QUERY_ERRORS,
    async handle(request) {
      const body = await readJsonBody(services, request, schemas.query, 'vector');
      const cursor = body.cursor ?? request.query.cursor;
      return answer(request, collectionInPath(services, request, cursor), body);
    },
  });
}

function queryAnywhere(services: RouteServices, answer: Answer): Route {
  const schemas = services.schemas.query;
  return defineRoute({
    method: 'POST',
    path: '/query',
    operationId: 'query',
    tag: 'Query',
    summary: 'Find the nearest vectors',
    access: { scope: 'vectors:read', on: 'named' },
    description:
      "The collection is the body's `collection`, else `?collection=`, else the configured default collection.",
    query: schemas.queryPageAnywhere,
    body: schemas.queryAnywhere,
    reply: schemas.reply,
    sendsServerTiming: true,
    errors: [...QUERY_ERRORS, 'collection_required'],
    async handle(request) {
      const { collection: inBody, ...body } = await readJsonBody(
        services,
        request,
        schemas.queryAnywhere,
        'vector',
      );
      const { query } = request;
      const id = chooseCollection(services, request, {
        inBody,
        inQuery: query.collection,
        cursor: body.cursor ?? query.cursor,
      });
      request.requireHeld([id]);
      return answer(request, id, body);
    },
  });
}

function createAnswer(services: RouteServices): Answer {
  const { database, embedder, limits } = services;
  const slowQueries = new SlowQueryLog(services);
  const writeReply = createPageWriter(services.schemas.query.reply);
  return async (request, collectionId, body) => {
    request.issueLayout = {
      ...BODY_LAYOUT,
      parameters: PAGE_MEMBERS.filter((name) => body[name] === undefined),
    };
    const query = checkQuery(toQueryRequest(withPage(body, request.query)), limits);
    request.charge(costOf(query, limits));
    const { telemetry, signal } = request;
    const collection = database.collection(collectionId);
    const context = { embedder, collection, signal };
    const [embedded] = await embedQueries([query], context, (_, path) => field(...path));
    const { reply, text } = await slowQueries.run(request, collectionId, embedded!, {
      search: () =>
        collection.query(embedded!, { signal, reserve: (bytes) => request.reserveWork(bytes) }),
      async write(found) {
        telemetry.addPhases(() => phasesOf(found));
        const reserve = (characterCount: number) => request.reserveReply(characterCount);
        return await writeReply(found, reserve, found.valuesEncoding);
      },
    });
    const totalMs = performance.now() - telemetry.startedAtMs;
    return jsonReply(text, { 'server-timing': serverTiming(reply.timings, totalMs) });
  };
}

/** The body with the page members of the query string. Throws where the two differ. */
function withPage(body: QueryBody, page: QueryPage): QueryBody {
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
