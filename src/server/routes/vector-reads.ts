// Reads of vectors: one, several by id, pages of all, and counts.

import type { z } from 'zod';
import type { ErrorCode } from '../../common/errors.js';
import { chooseCollection, collectionInPath } from '../collection-choice.js';
import { applyIfNoneMatch, etagOfVersion } from '../conditional.js';
import { readJsonBody } from '../ingest/parse-request.js';
import { createPageWriter, createRecordWriter } from '../replies/record-writer.js';
import type { StoredReply } from '../replies/reply.js';
import { CACHE_VECTOR, jsonReply } from '../replies/reply.js';
import type { RequestContext } from '../request-context.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';
import type { Schemas } from '../schemas/all.js';
import type { Properties } from '../wire-names.js';

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

type ListPage = (
  request: RequestContext<unknown>,
  collectionId: string,
  query: Properties<z.output<Schemas['vectors']['listQuery']>>,
) => Promise<StoredReply>;

function pageLister({ database, limits, schemas }: RouteServices): ListPage {
  const writePage = createPageWriter(schemas.vectors.list);
  return async (request, collectionId, query) => {
    // With values, a page costs as much as its vectors.
    if (query.includeValues) request.charge(query.limit ?? limits.pageLimitDefault);
    // The first page sorts by a column of all vectors for each key.
    if (query.sort !== undefined && query.cursor === undefined) request.charge(query.sort.length);
    const reply = await database.collection(collectionId).list(query, { signal: request.signal });
    return jsonReply(await writePage(reply, (count) => request.reserveReply(count)));
  };
}

function listRoutes(services: RouteServices): Route[] {
  const { vectors } = services.schemas;
  const listPage = pageLister(services);

  const list = defineRoute({
    method: 'GET',
    path: '/collections/{id}/vectors',
    operationId: 'listVectorsInCollection',
    tag: 'Vectors',
    summary: 'List vectors, page by page',
    access: { scope: 'vectors:read', on: 'path' },
    description: LIST_DESCRIPTION,
    query: vectors.listQuery,
    body: null,
    reply: vectors.list,
    errors: LIST_ERRORS,
    handle: (request) =>
      listPage(request, collectionInPath(services, request, request.query.cursor), request.query),
  });

  const listAnywhere = defineRoute({
    method: 'GET',
    path: '/vectors',
    operationId: 'listVectors',
    tag: 'Vectors',
    summary: 'List vectors, page by page',
    access: { scope: 'vectors:read', on: 'named' },
    description: `Lists the collection \`?collection=\`, or the configured default collection. ${LIST_DESCRIPTION}`,
    query: vectors.listQueryAnywhere,
    body: null,
    reply: vectors.list,
    errors: [...LIST_ERRORS, 'collection_required'],
    handle(request) {
      const { collection: inQuery, cursor } = request.query;
      const named = { inBody: undefined, inQuery, cursor };
      const id = chooseCollection(services, request, named);
      request.requireHeld([id]);
      return listPage(request, id, request.query);
    },
  });

  const listByBody = defineRoute({
    method: 'POST',
    path: '/collections/{id}/vectors/list',
    operationId: 'listVectorsByBody',
    tag: 'Vectors',
    summary: 'List vectors by a filter that is too long for a URL',
    access: { scope: 'vectors:read', on: 'path' },
    description: `As the list by GET, and each takes the cursors of the other. ${LIST_DESCRIPTION}`,
    body: vectors.listBody,
    reply: vectors.list,
    errors: LIST_ERRORS,
    async handle(request) {
      const body = await readJsonBody(services, request, vectors.listBody);
      return listPage(request, collectionInPath(services, request, body.cursor), body);
    },
  });

  const listByBodyAnywhere = defineRoute({
    method: 'POST',
    path: '/vectors/list',
    operationId: 'listVectorsByBodyAnywhere',
    tag: 'Vectors',
    summary: 'List vectors by a filter that is too long for a URL',
    access: { scope: 'vectors:read', on: 'named' },
    description: `The collection is the body's \`collection\`, else the configured default collection. ${LIST_DESCRIPTION}`,
    body: vectors.listBodyAnywhere,
    reply: vectors.list,
    errors: [...LIST_ERRORS, 'collection_required'],
    async handle(request) {
      const body = await readJsonBody(services, request, vectors.listBodyAnywhere);
      const { collection: inBody, cursor } = body;
      const id = chooseCollection(services, request, { inBody, inQuery: undefined, cursor });
      request.requireHeld([id]);
      return listPage(request, id, body);
    },
  });

  return [list, listAnywhere, listByBody, listByBodyAnywhere];
}

function getVector(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  const writeRecord = createRecordWriter(vectors.record);
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
      const reply = jsonReply(writeRecord(record), {
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
  const writeFetched = createPageWriter(vectors.fetched);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/vectors/fetch',
    operationId: 'fetchVectors',
    tag: 'Vectors',
    summary: 'Read vectors by their ids',
    access: { scope: 'vectors:read', on: 'path' },
    body: vectors.fetch,
    reply: vectors.fetched,
    errors: ['collection_not_found', 'collection_unavailable', 'limit_exceeded'],
    async handle(request) {
      const body = await readJsonBody(services, request, vectors.fetch);
      request.charge(body.ids.length);
      const found = await database.collection(request.params.id).fetch([...new Set(body.ids)], {
        values: body.includeValues,
        metadata: body.includeMetadata,
        sequence: body.includeSequence,
        expiry: true,
      });
      return jsonReply(await writeFetched(found, (count) => request.reserveReply(count)));
    },
  });
}

function countVectors(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/count',
    operationId: 'countVectors',
    tag: 'Vectors',
    summary: 'Count vectors, exactly',
    access: { scope: 'vectors:read', on: 'path' },
    body: vectors.count,
    reply: vectors.counted,
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter'],
    async handle(request) {
      const { filter } = await readJsonBody(services, request, vectors.count);
      const found = await database.collection(request.params.id).countFound(filter);
      return jsonReply(JSON.stringify(found));
    },
  });
}
