// Collections: create, list, read, change, delete.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { holdsScopeOn } from '../../common/access.js';
import type { CollectionRecord } from '../../database/api.js';
import { applyIfNoneMatch, etagOf } from '../conditional.js';
import { runWrite } from '../idempotency.js';
import type { JsonBody, ParsedBody } from '../ingest/json-body.js';
import { parseJsonBody, readJsonBody } from '../ingest/parse-request.js';
import { validateBody } from '../ingest/validate.js';
import { createRecordWriter } from '../replies/record-writer.js';
import type { StoredReply } from '../replies/reply.js';
import { CACHE_RECORD, jsonReply } from '../replies/reply.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';

export function collectionRoutes(services: RouteServices): Route[] {
  return [
    createCollection(services),
    listCollections(services),
    getCollection(services),
    updateCollection(services),
    deleteCollection(services),
  ];
}

function createCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const writeRecord = createRecordWriter(collections.record);
  const createdReply = (record: CollectionRecord) =>
    jsonReply(writeRecord(record), { location: `/v1/collections/${record.id}` });

  return defineRoute({
    method: 'POST',
    path: '/collections',
    operationId: 'createCollection',
    audit: 'collection.create',
    tag: 'Collections',
    summary: 'Create a collection',
    access: { scope: 'collections:write', on: 'named' },
    query: z.strictObject({
      if_not_exists: z.boolean().default(false).meta({
        description:
          'If the collection exists with the same dimension and metric, return it instead of 409.',
      }),
    }),
    body: collections.create,
    reply: collections.record,
    takesIdempotencyKey: true,
    sendsLocation: true,
    errors: ['collection_exists', 'limit_exceeded', 'storage_full'],
    async handle(request) {
      const parsed = await parseJsonBody(services, request);
      const named = idIn(parsed);
      // Checked also before a replay: the scopes may have changed since the stored reply.
      if (named !== undefined) request.authorize(named, { isNew: true });
      return runWrite(services, request, parsed, async (json, attach) => {
        const body = validateBody(collections.create, json);
        const id = named ?? randomUUID();
        if (named === undefined) request.authorize(id, { isNew: true });
        const { record, created } = await database.createCollection(
          {
            id,
            dimension: body.dimension,
            metric: body.metric,
            description: body.description,
            labels: body.labels ?? {},
          },
          { ifNotExists: request.query.if_not_exists, attachedReply: attach?.(createdReply) },
        );
        return created ? createdReply(record) : jsonReply(writeRecord(record));
      });
    },
  });
}

function listCollections(services: RouteServices): Route {
  const { database } = services;
  const { basics, collections } = services.schemas;
  const writePage = createRecordWriter(collections.list);
  return defineRoute({
    method: 'GET',
    path: '/collections',
    operationId: 'listCollections',
    tag: 'Collections',
    summary: 'List collections in the order of their ids',
    description: 'Lists the collections that the credential may see.',
    access: { scope: 'collections:read', on: 'visible' },
    query: z.strictObject({ limit: basics.limit, cursor: basics.cursor }),
    body: null,
    reply: collections.list,
    sendsETag: true,
    errors: ['cursor_invalid', 'limit_exceeded'],
    handle({ query, headers, principal }) {
      const isVisible = (id: string) => holdsScopeOn(principal, 'collections:read', id);
      const page = database.listCollections({ ...query, isVisible });
      return applyIfNoneMatch(taggedReply(writePage(page)), headers['if-none-match']);
    },
  });
}

function getCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const writeRecord = createRecordWriter(collections.record);
  return defineRoute({
    method: 'GET',
    path: '/collections/{id}',
    operationId: 'getCollection',
    tag: 'Collections',
    summary: 'Read the record of a collection',
    access: { scope: 'collections:read', on: 'path' },
    body: null,
    reply: collections.record,
    sendsETag: true,
    errors: ['collection_not_found'],
    handle({ params, headers }) {
      const text = writeRecord(database.collection(params.id).record());
      return applyIfNoneMatch(taggedReply(text), headers['if-none-match']);
    },
  });
}

function updateCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const writeRecord = createRecordWriter(collections.record);
  return defineRoute({
    method: 'PATCH',
    path: '/collections/{id}',
    operationId: 'updateCollection',
    audit: 'collection.update',
    tag: 'Collections',
    summary: 'Change the description or the labels of a collection',
    access: { scope: 'collections:write', on: 'path' },
    body: collections.update,
    reply: collections.record,
    errors: ['collection_not_found', 'collection_unavailable', 'limit_exceeded', 'storage_full'],
    async handle(request) {
      const body = await readJsonBody(services, request, collections.update);
      const record = await database.collection(request.params.id).update(body);
      return jsonReply(writeRecord(record));
    },
  });
}

function deleteCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  return defineRoute({
    method: 'DELETE',
    path: '/collections/{id}',
    operationId: 'deleteCollection',
    audit: 'collection.delete',
    tag: 'Collections',
    summary: 'Delete a collection with its vectors',
    access: { scope: 'collections:write', on: 'path' },
    description:
      'The id can be used for a new collection immediately; cursors of the deleted one do not work on it.',
    body: null,
    reply: collections.deleted,
    errors: ['collection_not_found', 'storage_full'],
    async handle({ params }) {
      const id = params.id;
      const { vectorCount } = await database.collection(id).drop();
      return jsonReply(JSON.stringify({ id, deleted: true, vector_count: vectorCount }));
    },
  });
}

/** The id in a body that has not been validated yet; validation rejects invalid ids later. */
function idIn({ outcome }: ParsedBody<JsonBody>): string | undefined {
  const id = outcome.ok ? outcome.value.id : undefined;
  return typeof id === 'string' ? id : undefined;
}

function taggedReply(text: string): StoredReply {
  return jsonReply(text, { etag: etagOf(text), 'cache-control': CACHE_RECORD });
}
