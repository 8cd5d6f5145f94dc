// Nearest-neighbour search, in a collection that the path names or in one that the body names.

import type { z } from 'zod';
import type { QueryRequest, StoredReply } from '../../database/api.js';
import type { ErrorCode, ErrorItem } from '../../errors.js';
import type { Limits } from '../../limits.js';
import { parseJsonBody } from '../bodies/bodies.js';
import { chooseCollection } from '../collection-choice.js';
import { refusal, withPointers } from '../findings.js';
import { leastFloat32ShownAtLeast } from '../float-text.js';
import { bodyOf } from '../idempotency.js';
import { jsonReply } from '../reply.js';
import { queryText } from '../reply-text.js';
import { defineRoute, type Route, type RouteRequest, type RouteServices } from '../route.js';
import type { Schemas } from '../schemas/all.js';
import { phasesOf, SlowQueries, serverTiming } from '../telemetry/query-report.js';
import { validateBody } from '../validate.js';

type QueryBody = z.output<Schemas['query']['query']>;
/** What the query string may say as well as the body. */
const PAGE_MEMBERS = ['limit', 'offset', 'cursor'] as const;

type QueryPage = z.output<Schemas['query']['queryPage']>;

const QUERY_ERRORS: readonly ErrorCode[] = [
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
];

export function queryRoutes(services: RouteServices): Route[] {
  const { database, limits } = services;
  const schemas = services.schemas.query;
  const slowQueries = new SlowQueries(services);

  async function answer(
    request: RouteRequest<QueryPage>,
    collectionId: string,
    body: QueryBody,
  ): Promise<StoredReply> {
    const query = toQueryRequest(withPage(body, request.query));
    checkRules(query, limits);
    request.charge(costOf(query, limits));
    const { watch, signal } = request;
    const reply = await slowQueries.watch(request, collectionId, query, () =>
      withPointers(
        (pointer) => placeOf(pointer, body),
        () => database.query(collectionId, query, { signal }),
      ),
    );
    watch.addPhases(phasesOf(reply));
    const text = await queryText(reply, (count) => request.holdReply(count));
    const totalMs = performance.now() - watch.startedAtMs;
    return jsonReply(text, { 'server-timing': serverTiming(reply.timings, totalMs) });
  }

  const inCollection = defineRoute({
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
      const json = bodyOf(await parseJsonBody(services, request, 'vector'));
      return answer(request, request.params.id, validateBody(schemas.query, json));
    },
  });

  const anywhere = defineRoute({
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
      const json = bodyOf(await parseJsonBody(services, request, 'vector'));
      const body = validateBody(schemas.queryAnywhere, json);
      const id = chooseCollection(services, request, body.collection, request.query.collection);
      return answer(request, id, body);
    },
  });

  return [inCollection, anywhere];
}

/** Findings about the page stand in the query string, unless the body has the member. */
function placeOf(pointer: string, body: QueryBody): string {
  const name = PAGE_MEMBERS.find((member) => pointer === `/${member}`);
  return name !== undefined && body[name] === undefined ? `?${name}` : pointer;
}

/** The body with what the query string says about the page. Throws where the two differ. */
function withPage(body: QueryBody, page: QueryPage): QueryBody {
  const findings: ErrorItem[] = [];
  for (const name of PAGE_MEMBERS) {
    const inBody = body[name];
    const inQuery = page[name];
    if (inBody === undefined || inQuery === undefined || inBody === inQuery) continue;
    findings.push({
      pointer: `?${name}`,
      code: 'invalid_request',
      detail: `The ${name} in the query string differs from the one in the body.`,
    });
  }
  if (findings.length > 0) throw refusal(findings);
  return {
    ...body,
    limit: body.limit ?? page.limit,
    offset: body.offset ?? page.offset,
    cursor: body.cursor ?? page.cursor,
  };
}

function toQueryRequest(body: QueryBody): QueryRequest {
  return {
    vector: body.vector,
    id: body.id,
    topK: body.top_k,
    limit: body.limit,
    offset: body.offset,
    cursor: body.cursor,
    filter: body.filter,
    includeMetadata: body.include_metadata,
    includeValues: body.include_values,
    metric: body.metric,
    sort: body.sort,
    scoreThreshold:
      body.score_threshold === undefined
        ? undefined
        : leastFloat32ShownAtLeast(body.score_threshold),
    minSequence: body.min_sequence,
    explain: body.explain,
  };
}

/** Metadata is short beside a vector: so many matches with it are worth one query. */
const MATCHES_A_QUERY = 100;

/** A query, and the vectors that it reads out, as many as the page may have. */
function costOf(query: QueryRequest, limits: Limits): number {
  const matchCount = Math.max(1, query.limit ?? query.topK ?? limits.topKDefault);
  const hasValues = (query.includeValues ?? false) !== false;
  if (hasValues) return matchCount;
  return query.includeMetadata === true ? Math.ceil(matchCount / MATCHES_A_QUERY) : 1;
}

/** What can be told without the collection and without opening the cursor. */
function checkRules(query: QueryRequest, limits: Limits): void {
  const findings: ErrorItem[] = [];
  const invalid = (pointer: string, detail: string) =>
    findings.push({ pointer, code: 'invalid_request', detail });
  if (query.vector !== undefined && query.id !== undefined) {
    invalid('/id', 'Expected vector or id; found both.');
  }
  if (query.vector === undefined && query.id === undefined && query.cursor === undefined) {
    invalid('/vector', 'Expected vector or id; found neither.');
  }
  if (query.offset !== undefined && query.cursor !== undefined) {
    invalid('/offset', 'Expected offset or cursor; found both.');
  }
  const { topKMax } = limits;
  const isPaged = query.limit !== undefined || query.cursor !== undefined;
  const isSorted = query.sort !== undefined;
  if (query.topK !== undefined && query.topK > topKMax && (isSorted || !isPaged)) {
    findings.push({
      pointer: '/top_k',
      code: 'limit_exceeded',
      detail: isSorted
        ? `A sorted query takes at most ${topKMax}; found ${query.topK}.`
        : `One page has at most ${topKMax} matches; found ${query.topK}. With limit, pages may make up more.`,
      expected: topKMax,
      actual: query.topK,
    });
  }
  if (findings.length > 0) throw refusal(findings);
}
