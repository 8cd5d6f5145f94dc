// Collections: create, list, read, change, delete.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { holdsScopeOn } from '../../common/access.js';
import { field, SagittaError, validationError } from '../../common/errors.js';
import { isJsonObject } from '../../common/metadata-path.js';
import { UNNAMED } from '../../common/vectors.js';
import type { CollectionRecord } from '../../database/api/database-api.js';
import type { JsonBody, ParsedBody } from '../bodies/json-body.js';
import {
  completeRecord,
  completeRecords,
  fetchRemoteRecord,
  mergeRowState,
} from '../cluster/remote-records.js';
import { dimensionOf, sourceOf } from '../embedding/embedding-source.js';
import { parseJsonBody } from '../ingest/parse-request.js';
import { repliesBy } from '../replies/record-writer.js';
import { bodyOf, runWrite } from '../requests/idempotency.js';
import type { RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { validateBody } from '../schemas/validate.js';
import { toFieldChanges, toFieldShapes, toSparseChanges } from '../schemas/vector-fields.js';
import { applyIfNoneMatch, etagOf } from '../wire/conditional.js';
import { consistencyOf } from '../wire/consistency.js';
import type { StoredReply } from '../wire/reply.js';
import { CACHE_RECORD } from '../wire/reply.js';
import { requireNode } from './cluster.js';
import { defineJsonRoute } from './json-route.js';

export function collectionRoutes(services: RouteServices): Route[] {
  return [
    createCollection(services),
    listCollections(services),
    getCollection(services),
    listSegments(services),
    updateCollection(services),
    cloneCollection(services),
    renameCollection(services),
    moveCollection(services),
    deleteCollection(services),
  ];
}

function createCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const replyWith = repliesBy(collections.record);
  const createdReply = (record: CollectionRecord) => replyWith(record, locationOf(record));

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
          'If the collection exists with the same dimension, metric, named and sparse vectors, return it instead of 409.',
      }),
    }),
    body: collections.create,
    reply: collections.record,
    takesIdempotencyKey: true,
    sendsLocation: true,
    errors: [
      'collection_exists',
      'dimension_mismatch',
      'embedding_not_configured',
      'limit_exceeded',
      'storage_full',
    ],
    async handle(request) {
      const parsed = await parseJsonBody(services, request);
      const named = requestedId(parsed);
      // Authorized also before a replay, since the scopes may have changed since the stored reply.
      if (named !== undefined) authorizeName(services, request, named);
      return runWrite(services, request, parsed, async (json, attach) => {
        const body = validateBody(collections.create, json);
        checkVectorNames('vectors', json.vectors);
        checkVectorNames('sparse_vectors', json.sparse_vectors);
        const { metric, elementType, vectors, sparseVectors, embed, ...settings } = body;
        const source = sourceOf(embed, services.embedder);
        const dimension = dimensionOf(body.dimension, source);
        const id = named ?? randomUUID();
        if (named === undefined) request.authorize(id, { isNew: true });
        const { record, created } = await database.createCollection(
          {
            ...settings,
            embed: source,
            id,
            labels: settings.labels ?? {},
            vectors: toFieldShapes({ dimension, metric, elementType, vectors, sparseVectors }),
          },
          { ifNotExists: request.query.ifNotExists, attachedReply: attach?.(createdReply) },
        );
        if (created) return createdReply(record);
        return replyWith(await completeRecord(services, record));
      });
    },
  });
}

/** Throws `invalid_request` for `__proto__`, which a zod record drops without an error. */
function checkVectorNames(member: string, vectors: unknown): void {
  if (!isJsonObject(vectors) || !Object.hasOwn(vectors, '__proto__')) return;
  const detail = 'The name of a vector begins with a letter; found "__proto__".';
  const location = field(member, '__proto__');
  throw validationError([{ location, code: 'invalid_request', detail }]);
}

function listCollections(services: RouteServices): Route {
  const { database } = services;
  const { basics, collections } = services.schemas;
  const replyWith = repliesBy(collections.list);
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
    async handle({ query, headers, principal }) {
      const isVisible = (id: string) => holdsScopeOn(principal, 'collections:read', id);
      const page = database.listCollections({ ...query, isVisible });
      const collections = await completeRecords(services, page.collections, consistencyOf(headers));
      return withETag(replyWith({ ...page, collections }), headers['if-none-match']);
    },
  });
}

function getCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const replyWith = repliesBy(collections.record);
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
    errors: ['collection_not_found', 'no_holder'],
    async handle({ params, headers }) {
      const wanted = consistencyOf(headers);
      const known = await database.collection(params.id).loadedRecord();
      const record = await completeRecord(services, known, wanted);
      const incarnation = database.incarnationOf(params.id) ?? '';
      const mustBeCurrent = wanted.isStrong || Object.hasOwn(wanted.seen, incarnation);
      if (mustBeCurrent && record.status === 'elsewhere') {
        throw services.forwarder!.noHolderError([incarnation]);
      }
      return withETag(replyWith(record), headers['if-none-match']);
    },
  });
}

function listSegments(services: RouteServices): Route {
  const { database } = services;
  const { basics, collections } = services.schemas;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/collections/{id}/segments',
    operationId: 'listSegments',
    tag: 'Collections',
    summary: 'List the segments of a collection, with their rows, memory and files',
    access: { scope: 'collections:read', on: 'path' },
    query: z.strictObject({ limit: basics.limit, cursor: basics.cursor }),
    body: null,
    reply: collections.segments,
    errors: ['collection_not_found', 'collection_unavailable', 'cursor_invalid', 'limit_exceeded'],
    touches: ({ collectionInPath }) => [collectionInPath],
    handle: ({ params, query }) => database.collection(params.id).segments(query),
  });
}

function updateCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const replyWith = repliesBy(collections.record);
  return defineRoute({
    method: 'PATCH',
    path: '/collections/{id}',
    operationId: 'updateCollection',
    audit: 'collection.update',
    tag: 'Collections',
    summary:
      'Change the description, labels, time to live, schema, model or replication factor of a collection, or add and drop named vectors',
    access: { scope: 'collections:write', on: 'path' },
    body: collections.update,
    reply: collections.record,
    mayTakeLong: true,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'dimension_mismatch',
      'embedding_not_configured',
      'invalid_metadata',
      'limit_exceeded',
      'storage_full',
    ],
    async parse(request) {
      const json = bodyOf(await parseJsonBody(services, request));
      const body = validateBody(collections.update, json);
      checkVectorNames('vectors', json.vectors);
      checkVectorNames('sparse_vectors', json.sparse_vectors);
      return body;
    },
    // The rows are checked by a schema.
    touches: ({ collectionInPath }, { schema }) => (schema === undefined ? [] : [collectionInPath]),
    async handle(request, body) {
      const collection = database.collection(request.params.id);
      const embed = sourceOf(body.embed, services.embedder);
      const unnamed = collection.vectors[UNNAMED];
      if (unnamed?.kind === 'dense') dimensionOf(unnamed.dimension, embed);
      const change = {
        ...body,
        embed,
        vectors: toFieldChanges(body.vectors),
        sparseVectors: toSparseChanges(body.sparseVectors),
      };
      const record = await collection.update(change);
      return replyWith(await completeRecord(services, record));
    },
  });
}

function cloneCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const replyWith = repliesBy(collections.record);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/clone',
    operationId: 'cloneCollection',
    audit: 'collection.clone',
    tag: 'Collections',
    summary: 'Copy a collection',
    access: { scope: 'collections:write', on: 'path' },
    description:
      'The clone contains the vectors of one point in time and is independent of the collection. Writes continue meanwhile. The files are shared if the file system supports links, so that a clone takes seconds and little disk space. The reply is sent when the clone can be queried. Also requires `vectors:read` on the collection, and `collections:write` on the id of the clone.',
    body: collections.clone,
    reply: collections.record,
    takesIdempotencyKey: true,
    sendsLocation: true,
    mayTakeLong: true,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'collection_exists',
      'limit_exceeded',
      'storage_full',
    ],
    async parse(request) {
      const parsed = await parseJsonBody(services, request);
      authorizeCopy(request, requestedId(parsed));
      return parsed;
    },
    touches: ({ collectionInPath }) => [collectionInPath],
    async handle(request, parsed) {
      return runWrite(services, request, parsed, async (json, attach) => {
        const named = requestedId(parsed);
        const { id = randomUUID(), description, labels } = validateBody(collections.clone, json);
        if (named === undefined) authorizeCopy(request, id);
        const encode = (record: CollectionRecord) => replyWith(record, locationOf(record));
        const record = await database
          .collection(request.params.id)
          .clone({ id, description, labels }, attach?.(encode));
        return encode(record);
      });
    },
  });
}

function renameCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  const replyWith = repliesBy(collections.record);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/rename',
    operationId: 'renameCollection',
    audit: 'collection.rename',
    tag: 'Collections',
    summary: 'Give a collection another id',
    access: { scope: 'collections:write', on: 'path' },
    description:
      'Takes the same time for any number of vectors. Existing cursors, aliases and running operations continue to work; the old id becomes available. Also requires `vectors:read` on the collection, and `collections:write` on the new id.',
    body: collections.rename,
    reply: collections.record,
    takesIdempotencyKey: true,
    sendsLocation: true,
    errors: ['collection_not_found', 'collection_exists', 'storage_full'],
    async handle(request) {
      const parsed = await parseJsonBody(services, request);
      authorizeCopy(request, requestedId(parsed));
      return runWrite(services, request, parsed, async (json, attach) => {
        const { id } = validateBody(collections.rename, json);
        const collection = database.collection(request.params.id);
        // The reply is stored with the new id, so the state of the rows on other nodes is fetched before.
        const known = await fetchRemoteRecord(services, collection.record());
        const encode = (record: CollectionRecord) =>
          replyWith(known === null ? record : mergeRowState(known, record), locationOf(record));
        const record = await collection.rename(id, attach?.(encode));
        return encode(record);
      });
    },
  });
}

function moveCollection(services: RouteServices): Route {
  const { database, forwarder } = services;
  const { collections } = services.schemas;
  return defineJsonRoute(services, {
    method: 'POST',
    path: '/collections/{id}/move',
    operationId: 'moveCollection',
    audit: 'collection.move',
    tag: 'Collections',
    summary: 'Move a collection from one node of a cluster to another',
    description:
      'For a collection with a replication factor. The reply is sent when the move has begun. The record contains `move` until the other node has loaded the collection and replaces the first one. Reads and writes continue meanwhile.',
    access: { scope: 'collections:write', on: 'path' },
    body: collections.move,
    reply: collections.record,
    errors: ['collection_not_found', 'node_not_found', 'storage_full'],
    async handle(request, nodes) {
      const collection = database.collection(request.params.id);
      collection.requireExists();
      const { id } = collection;
      for (const node of [nodes.from, nodes.to]) requireNode(forwarder?.cluster, node);
      await forwarder!.cluster.move(database.incarnationOf(id)!, nodes);
      return completeRecord(services, collection.record());
    },
  });
}

function deleteCollection(services: RouteServices): Route {
  const { database } = services;
  const { collections } = services.schemas;
  return defineJsonRoute(services, {
    method: 'DELETE',
    path: '/collections/{id}',
    operationId: 'deleteCollection',
    audit: 'collection.delete',
    tag: 'Collections',
    summary: 'Delete a collection with its vectors',
    access: { scope: 'collections:write', on: 'path' },
    description:
      'The id can be used for a new collection immediately; cursors of the deleted one do not work on it. A collection with aliases is not deleted.',
    body: null,
    reply: collections.deleted,
    errors: ['collection_not_found', 'collection_aliased', 'storage_full'],
    async handle({ params }) {
      const id = params.id;
      const collection = database.collection(id);
      // Other nodes know the state of their rows only until the collection is dropped.
      const known = await fetchRemoteRecord(services, collection.record());
      const { vectorCount } = await collection.drop();
      return { id, deleted: true, vectorCount: known?.vectorCount ?? vectorCount };
    },
  });
}

/** The id in a body before validation, which rejects invalid ids later. */
function requestedId({ outcome }: ParsedBody<JsonBody>): string | undefined {
  const id = outcome.ok ? outcome.value.id : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** Authorizes the creation of a collection under a name that may be an alias of another one. */
function authorizeName(
  { database }: RouteServices,
  request: RequestContext<unknown>,
  name: string,
): void {
  request.authorize(name, { isNew: true });
  const id = database.resolve(name);
  if (id === name || holdsScopeOn(request.principal, 'collections:write', id)) return;
  // With if_not_exists, the reply would show the collection behind the alias.
  throw new SagittaError('collection_exists', `"${name}" is the name of an alias.`);
}

/**
 * Authorizes a request after which vectors are available under another id, and so to other credentials. `id` is
 * undefined if the request contains none.
 */
function authorizeCopy(request: RequestContext<unknown>, id: string | undefined): void {
  request.authorize(request.params.id!, { scope: 'vectors:read', name: request.collectionName });
  if (id !== undefined) request.authorize(id, { isNew: true });
}

function locationOf({ id }: CollectionRecord): StoredReply['headers'] {
  return { location: `/v1/collections/${id}` };
}

/** The reply with its entity tag, or 304 if the client has it. */
function withETag(reply: StoredReply, ifNoneMatch: string | undefined): StoredReply {
  const tags = { etag: etagOf(reply.body), 'cache-control': CACHE_RECORD };
  return applyIfNoneMatch({ ...reply, headers: { ...reply.headers, ...tags } }, ifNoneMatch);
}
