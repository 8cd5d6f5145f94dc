// Reads of vectors: one, several by id, pages, and counts.

import type { z } from 'zod';
import type { ErrorCode } from '../../common/errors.js';
import type { ListReply } from '../../database/api/database-api.js';
import { repliesBy } from '../replies/record-writer.js';
import type { RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import type { Schemas } from '../schemas/all.js';
import { applyIfNoneMatch, etagOfVersion } from '../wire/conditional.js';
import type { Properties } from '../wire/property-names.js';
import { CACHE_VECTOR } from '../wire/reply.js';
import { collectionToRead } from './collection-choice.js';
import { defineJsonRoute } from './json-route.js';

const LIST_ERRORS: readonly ErrorCode[] = [
  'collection_not_found',
  'collection_unavailable',
  'invalid_filter',
  'limit_exceeded',
  'cursor_invalid',
  'cursor_mismatch',
  'cursor_expired',
];

export function vectorReadRoutes(services: RouteServices): Route[] {
  return [
    ...listRoutes(services),
    getVector(services),
    fetchVectors(services),
    countVectors(services),
  ];
}

const LIST_DESCRIPTION =
  'In insertion order or as `sort` says, from the snapshot of the first page. `total` is present only when paging by `offset` or with `sort`.';

type ListQuery = Properties<z.output<Schemas['vectors']['listQuery' | 'listBodyAnywhere']>>;

function listRoutes(services: RouteServices): Route[] {
  const { vectors } = services.schemas;
  const listed = { tag: 'Vectors', reply: vectors.list } as const;
  const byQuery = {
    ...listed,
    method: 'GET',
    summary: 'List vectors, page by page',
    body: null,
  } as const;
  const byBody = {
    ...listed,
    method: 'POST',
    summary: 'List vectors with parameters that are too long for a URL',
  } as const;
  const inPath = { access: { scope: 'vectors:read', on: 'path' }, errors: LIST_ERRORS } as const;
  const anywhere = {
    access: { scope: 'vectors:read', on: 'named' },
    errors: [...LIST_ERRORS, 'collection_required'],
  } as const;
  const touches = (request: RequestContext<unknown>, query: ListQuery) => [
    collectionToRead(services, request, query),
  ];
  const list = (request: RequestContext<unknown>, query: ListQuery) =>
    listPage(services, request, query);

  return [
    defineJsonRoute(services, {
      ...byQuery,
      ...inPath,
      path: '/collections/{id}/vectors',
      operationId: 'listVectorsInCollection',
      description: LIST_DESCRIPTION,
      query: vectors.listQuery,
      touches: (request) => touches(request, request.query),
      handle: (request) => list(request, request.query),
    }),
    defineJsonRoute(services, {
      ...byQuery,
      ...anywhere,
      path: '/vectors',
      operationId: 'listVectors',
      description: `Lists the collection \`?collection=\`, or the configured default collection. ${LIST_DESCRIPTION}`,
      query: vectors.listQueryAnywhere,
      touches: (request) => touches(request, request.query),
      handle: (request) => list(request, request.query),
    }),
    defineJsonRoute(services, {
      ...byBody,
      ...inPath,
      path: '/collections/{id}/vectors/list',
      operationId: 'listVectorsByBody',
      description: `Like the list by GET, and with the same cursors. ${LIST_DESCRIPTION}`,
      body: vectors.listBody,
      touches,
      handle: list,
    }),
    defineJsonRoute(services, {
      ...byBody,
      ...anywhere,
      path: '/vectors/list',
      operationId: 'listVectorsByBodyAnywhere',
      description: `The collection is the body's \`collection\`, else the configured default collection. ${LIST_DESCRIPTION}`,
      body: vectors.listBodyAnywhere,
      touches,
      handle: list,
    }),
  ];
}

function listPage(
  services: RouteServices,
  request: RequestContext<unknown>,
  query: ListQuery,
): Promise<ListReply> {
  const { database, limits } = services;
  const { id } = request.touched[0]!;
  // A page with values costs as much as reading its vectors.
  if (query.includeValues) request.charge(query.limit ?? limits.pageLimitDefault);
  // The first page reads a column of all vectors per sort key.
  if (query.sort !== undefined && query.cursor === undefined) request.charge(query.sort.length);
  return database.collection(id).list(query, { signal: request.signal });
}

function getVector(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  const replyWith = repliesBy(vectors.record);
  return defineRoute({
    method: 'GET',
    path: '/collections/{id}/vectors/{vector_id}',
    operationId: 'getVector',
    tag: 'Vectors',
    summary: 'Read one vector',
    access: { scope: 'vectors:read', on: 'path' },
    query: vectors.getQuery,
    body: null,
    reply: vectors.record,
    sendsETag: true,
    errors: ['collection_not_found', 'collection_unavailable', 'vector_not_found'],
    async handle({ params, query, headers }) {
      const record = await database.collection(params.id).get(params.vector_id, {
        values: query.includeValues,
        metadata: query.includeMetadata,
        sequence: query.includeSequence,
        expiry: true,
      });
      const reply = replyWith(record, {
        etag: etagOfVersion(record.version),
        'cache-control': CACHE_VECTOR,
      });
      return applyIfNoneMatch(reply, headers['if-none-match']);
    },
  });
}

function fetchVectors(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  return defineJsonRoute(services, {
    method: 'POST',
    path: '/collections/{id}/vectors/fetch',
    operationId: 'fetchVectors',
    tag: 'Vectors',
    summary: 'Read vectors by their ids',
    access: { scope: 'vectors:read', on: 'path' },
    body: vectors.fetch,
    reply: vectors.fetched,
    errors: ['collection_not_found', 'collection_unavailable', 'limit_exceeded'],
    handle(request, body) {
      request.charge(body.ids.length);
      return database.collection(request.params.id).fetch([...new Set(body.ids)], {
        values: body.includeValues,
        metadata: body.includeMetadata,
        sequence: body.includeSequence,
        expiry: true,
      });
    },
  });
}

function countVectors(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  return defineJsonRoute(services, {
    method: 'POST',
    path: '/collections/{id}/count',
    operationId: 'countVectors',
    tag: 'Vectors',
    summary: 'Count vectors, exactly',
    access: { scope: 'vectors:read', on: 'path' },
    body: vectors.count,
    reply: vectors.counted,
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter'],
    handle: ({ params }, { filter }) => database.collection(params.id).countFound(filter),
  });
}
