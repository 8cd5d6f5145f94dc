// Writes of vectors: batches, streams, single vectors, patches and deletes.

import { z } from 'zod';
import { type ErrorCode, field, rowField, validationError } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import { type Vector, type VectorColumn, vectorAt } from '../../common/vectors.js';
import type { OnCommitted, VectorSelection, WriteResult } from '../../database/api/database-api.js';
import { JsonScanner } from '../../formats/json/json-scanner.js';
import type { ParsedVectors } from '../bodies/json-rows.js';
import { toBatch } from '../bodies/parsed-rows.js';
import { checkMetadata } from '../bodies/row-rules.js';
import { type ReadVectors, readRowVectors } from '../bodies/vectors-reader.js';
import { EMBED_FIELD, EMBEDDING_ERRORS, embedRows, embedText } from '../embedding/embed-rows.js';
import { ingest, refuseIfSet } from '../ingest/ingest-stream.js';
import { parseJsonBody, parseVectorsBody, readJsonBody } from '../ingest/parse-request.js';
import { repliesBy } from '../replies/record-writer.js';
import { bodyOf, runWrite } from '../requests/idempotency.js';
import { contentTypeOf, type RequestContext } from '../requests/request-context.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { validateBody } from '../schemas/validate.js';
import { checkIfMatch, etagOfVersion } from '../wire/conditional.js';
import { STREAM_TYPES } from '../wire/media-types.js';
import { BODY_LAYOUT, STREAM_LAYOUT } from '../wire/problem.js';
import { nameCollection } from './collection-choice.js';
import { defineJsonRoute } from './json-route.js';

const WRITE_ERRORS: readonly ErrorCode[] = [
  'collection_not_found',
  'collection_unavailable',
  'dimension_mismatch',
  'invalid_vector',
  'invalid_metadata',
  'limit_exceeded',
  'precondition_failed',
  'storage_full',
  ...EMBEDDING_ERRORS,
];

const WRITE_DESCRIPTION = `Takes \`{vectors: […]}\` or one vector, and writes all of the body or nothing. Also takes a stream of any length, which is written while it arrives:

- \`application/x-ndjson\`: each line is a vector \`{id?, values or embed, vectors?, metadata?, if_sequence?, expires_at?}\`. A write consists of 1 000 lines or 4 MB, whichever comes first.
- \`application/vnd.apache.arrow.stream\`: each record batch is one write, or several writes of at most 10 000 rows and 8 MB of vectors. The columns: \`id\` (text or integers; generated without it); \`values\`, \`vector\` or \`embedding\` (lists of numbers); \`vectors.<name>\` for each named vector, null in rows without it; \`sparse_vectors.<name>.indices\` and \`sparse_vectors.<name>.values\` for each sparse vector, lists of numbers, null or empty in rows without it; \`metadata\` (JSON text, structs or maps); every other column is a member of the metadata. Buffers may be compressed with LZ4 or Zstandard; a batch has at most \`body_bytes_max\`.

With the mode \`patch\` (a member of a JSON body, \`?mode=patch\` of a stream) vectors that exist are changed: each row contains the \`id\` and the new members, such as a named vector that was added to the collection; the rest is unchanged. \`metadata\` is a JSON merge patch. In JSON, a named or sparse vector that is null is removed; in Arrow, null leaves a vector unchanged, while a null in a column of metadata removes the member.

Each write of a stream is atomic. A new write begins where an id is repeated. \`committed_count\` in an error is the number of durable rows: all rows before that row, none after it. A stream that is sent again with the same \`Idempotency-Key\` continues where an earlier attempt ended.

In a cluster, the node that receives a stream with \`?bulk=true\` turns its rows into segment files itself, so that different nodes can take parts of a large import at the same time. Each file is one write. This is only for the mode \`upsert\`, without an \`Idempotency-Key\`; a service without a cluster ignores it.`;

export function vectorWriteRoutes(services: RouteServices): Route[] {
  return [
    writeVectors(services),
    ...putRoutes(services),
    patchVector(services),
    deleteVector(services),
    deleteVectors(services),
    updateVectors(services),
  ];
}

function writeVectors(services: RouteServices): Route {
  const { database, schemas } = services;
  const { vectors } = schemas;
  const replyWith = repliesBy(vectors.written);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/vectors',
    operationId: 'writeVectors',
    tag: 'Vectors',
    summary: 'Insert, update, upsert or patch vectors',
    access: { scope: 'vectors:write', on: 'path' },
    description: WRITE_DESCRIPTION,
    query: vectors.writeQuery,
    streamTypes: STREAM_TYPES,
    body: vectors.write,
    reply: vectors.written,
    takesIdempotencyKey: true,
    isBulk: ({ query, headers }) =>
      (query as { readonly bulk?: string }).bulk === 'true' &&
      STREAM_TYPES.some((type) => type === contentTypeOf(headers)),
    errors: [...WRITE_ERRORS, 'duplicate_id', 'vector_exists', 'vector_not_found'],
    async handle(request) {
      if (request.bodyStream !== null) {
        request.issueLayout = STREAM_LAYOUT;
        return ingest(services, request, request.bodyStream);
      }
      request.issueLayout = { ...BODY_LAYOUT, rows: 'vectors' };
      const { query } = request;
      refuseIfSet(query, ['mode'], 'This is for streams; a JSON body has its own member "mode".');
      refuseIfSet(query, ['bulk'], 'This is for streams.');
      refuseIfSet(query, ['idColumn', 'vectorColumn'], 'This parameter is only for Arrow.');
      const id = request.params.id!;
      const collection = database.collection(id);
      const shapes = collection.exists ? collection.vectors : null;
      const parsed = await parseVectorsBody(services, request, { pathId: null, shapes });
      return runWrite(services, request, parsed, async (rows, attach) => {
        const { mode, ids, isArray } = rows;
        collection.requireExists();
        request.charge(rows.batch.count);
        // One vector is the body itself.
        if (!isArray) request.issueLayout = BODY_LAYOUT;
        const context = { embedder: services.embedder, collection, signal: request.signal };
        const batch = toBatch(
          await embedRows(rows, context, (row) => (isArray ? rowField(row, 'embed') : EMBED_FIELD)),
        );
        const encode = (result: WriteResult) =>
          replyWith({ ...result, upsertedCount: batch.count, ids: ids ?? undefined });
        const result = await collection.write(batch, {
          mode,
          attachedReply: attach?.(encode),
          onCommitted: committed(request),
        });
        return encode(result);
      });
    },
  });
}

function putRoutes(services: RouteServices): Route[] {
  const { basics, vectors } = services.schemas;
  const replyWith = repliesBy(vectors.replaced);
  const handle = async (request: PutRequest, rows: ParsedVectors) =>
    replyWith(await replaceVector(services, request, rows));
  const common = {
    method: 'PUT',
    tag: 'Vectors',
    summary: 'Write or replace one vector',
    reply: vectors.replaced,
  } as const;
  return [
    defineRoute({
      ...common,
      path: '/vectors/{id}',
      operationId: 'putVector',
      access: { scope: 'vectors:write', on: 'named' },
      description:
        "Here `{id}` is the vector's id. The collection is the body's `collection`, else `?collection=`, else the configured default collection.",
      query: z.strictObject({ collection: basics.collection }),
      body: vectors.put,
      errors: [...WRITE_ERRORS, 'collection_required'],
      parse: (request) => parseVector(services, request, request.params.id!),
      touches(request, { collection }) {
        return [nameCollection(services, request, collection ?? request.query.collection)];
      },
      handle,
    }),
    defineRoute({
      ...common,
      path: '/collections/{id}/vectors/{vector_id}',
      operationId: 'putVectorInCollection',
      access: { scope: 'vectors:write', on: 'path' },
      body: vectors.putInCollection,
      errors: WRITE_ERRORS,
      async parse(request) {
        const rows = await parseVector(services, request, request.params.vector_id!);
        if (rows.collection === undefined) return rows;
        const detail = 'The path already names the collection.';
        const location = field('collection');
        throw validationError([{ location, code: 'unknown_parameter', detail }]);
      },
      handle,
    }),
  ];
}

type PutRequest = RequestContext<{ collection?: string | undefined }>;

async function parseVector(
  services: RouteServices,
  request: RequestContext<unknown>,
  id: string,
): Promise<ParsedVectors> {
  return bodyOf(await parseVectorsBody(services, request, { pathId: id, shapes: null }));
}

async function replaceVector(services: RouteServices, request: PutRequest, rows: ParsedVectors) {
  const { database, limits } = services;
  const { vector_id: idInPath, id: lastInPath } = request.params;
  const vectorId = (idInPath ?? lastInPath)!;
  const { id } = request.touched[0] ?? request.collectionInPath;
  const collection = database.collection(id);
  const context = { embedder: services.embedder, collection, signal: request.signal };
  const batch = toBatch(await embedRows(rows, context, () => EMBED_FIELD));
  const options = { shapes: collection.vectors, limits, isPatch: false };
  const { vectors } = readRowVectors(rows.sent ?? {}, options);
  const { insertedCount, sequence } = await collection.write(
    { ...batch, vectors: [...batch.vectors, ...vectors] },
    { mode: 'upsert', onCommitted: committed(request) },
  );
  return { id: vectorId, collection: id, created: insertedCount === 1, sequence };
}

function patchVector(services: RouteServices): Route {
  const { database, limits } = services;
  const { vectors } = services.schemas;
  const replyWith = repliesBy(vectors.patched);
  return defineRoute({
    method: 'PATCH',
    path: '/collections/{id}/vectors/{vector_id}',
    operationId: 'patchVector',
    tag: 'Vectors',
    summary: 'Change metadata or values of one vector',
    access: { scope: 'vectors:write', on: 'path' },
    body: vectors.patch,
    reply: vectors.patched,
    takesIfMatch: true,
    sendsETag: true,
    errors: [...WRITE_ERRORS, 'vector_not_found'],
    async handle(request) {
      const collectionId = request.params.id;
      const vectorId = request.params.vector_id;
      const body = await readJsonBody(services, request, vectors.patch, 'values');
      const { metadata, embed } = body;
      const collection = database.collection(collectionId);
      const context = { embedder: services.embedder, collection, signal: request.signal };
      const values = embed === undefined ? body.values : await embedText(embed, context);
      // The database checks the size of the merged metadata.
      const violation = metadata && checkMetadata(metadata, 0, limits);
      if (violation) throw validationError([{ location: field('metadata'), ...violation }]);
      const { vectors: named, sparseVectors } = body;
      const sent = { values, vectors: named, sparse_vectors: sparseVectors };
      const options = { shapes: collection.vectors, limits, isPatch: true };
      const changes = changesOf(readRowVectors(sent, options));
      const ifVersion = await checkIfMatch(request.headers['if-match'], async () => {
        const { version } = await collection.get(vectorId, { values: false, metadata: false });
        return version;
      });
      const { sequence, version } = await collection.patch(vectorId, {
        metadata: metadata && memberText(request.body, 'metadata'),
        vectors: changes,
        ifVersion,
        ifSequence: body.ifSequence,
        expiresAtMs: body.expiresAt === undefined ? undefined : expiryOf(body.expiresAt),
        onCommitted: committed(request),
      });
      return replyWith({ id: vectorId, sequence }, { etag: etagOfVersion(version) });
    },
  });
}

/** `time` has been validated by the schema. */
function expiryOf(time: string | null): number {
  return time === null ? Number.POSITIVE_INFINITY : Date.parse(time);
}

/** The vectors that a row sets or, as null, removes. */
function changesOf({ vectors, removed = new Map() }: ReadVectors): Map<string, Vector | null> {
  return new Map<string, Vector | null>([
    ...Array.from(removed.keys(), (name) => [name, null] as const),
    ...vectors.map(({ name, ...column }) => [name, vectorAt<VectorColumn>(column, 0)!] as const),
  ]);
}

function deleteVector(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  return defineJsonRoute(services, {
    method: 'DELETE',
    path: '/collections/{id}/vectors/{vector_id}',
    operationId: 'deleteVector',
    tag: 'Vectors',
    summary: 'Delete one vector',
    access: { scope: 'vectors:write', on: 'path' },
    query: vectors.deleteQuery,
    body: null,
    reply: vectors.deleted,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'vector_not_found',
      'precondition_failed',
      'storage_full',
    ],
    async handle(request) {
      const { id: collectionId, vector_id: id } = request.params;
      const { sequence } = await database.collection(collectionId!).deleteVector(id!, {
        ifSequence: request.query.ifSequence,
        onCommitted: committed(request),
      });
      return { id, deleted: true, sequence };
    },
  });
}

function deleteVectors(services: RouteServices): Route {
  const { database } = services;
  const { vectors } = services.schemas;
  const replyWith = repliesBy(vectors.deletedMany);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/vectors/delete',
    operationId: 'deleteVectors',
    tag: 'Vectors',
    summary: 'Delete vectors by id, by filter, or all',
    access: { scope: 'vectors:write', on: 'path' },
    body: vectors.delete,
    reply: vectors.deletedMany,
    takesIdempotencyKey: true,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'invalid_filter',
      'limit_exceeded',
      'storage_full',
    ],
    async handle(request) {
      const parsed = await parseJsonBody(services, request);
      return runWrite(services, request, parsed, async (json, attach) => {
        const body = validateBody(vectors.delete, json);
        if (body.ids !== undefined) request.charge(body.ids.length);
        const result = await database.collection(request.params.id).delete(selectionOf(body), {
          dryRun: body.dryRun,
          attachedReply: attach?.(replyWith),
          onCommitted: committed(request),
        });
        return replyWith(result);
      });
    },
  });
}

function updateVectors(services: RouteServices): Route {
  const { database, limits } = services;
  const { vectors } = services.schemas;
  const replyWith = repliesBy(vectors.updatedMany);
  return defineRoute({
    method: 'POST',
    path: '/collections/{id}/vectors/update',
    operationId: 'updateVectors',
    tag: 'Vectors',
    summary: 'Change the metadata of vectors by id, by filter, or of all',
    access: { scope: 'vectors:write', on: 'path' },
    description:
      'One write: every reader sees all of the changes or none. Vectors that the change would not alter are neither written nor counted, so the request can be repeated. One update changes as many vectors as one body may write; for more set `limit`, and repeat the request while `has_more` is true.',
    body: vectors.update,
    reply: vectors.updatedMany,
    takesIdempotencyKey: true,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'invalid_filter',
      'invalid_metadata',
      'limit_exceeded',
      'storage_full',
    ],
    async handle(request) {
      const parsed = await parseJsonBody(services, request);
      return runWrite(services, request, parsed, async (json, attach) => {
        const body = validateBody(vectors.update, json);
        const member = body.patch === undefined ? 'metadata' : 'patch';
        const text = memberText(request.body, member);
        const violation = checkMetadata(body[member], Buffer.byteLength(text), limits);
        if (violation !== null) throw validationError([{ location: field(member), ...violation }]);
        if (body.ids !== undefined) request.charge(body.ids.length);
        const result = await database
          .collection(request.params.id)
          .updateMetadata(selectionOf(body), {
            change: { kind: member === 'patch' ? 'patch' : 'replace', text },
            limit: body.limit,
            attachedReply: attach?.(replyWith),
            onCommitted: committed(request),
          });
        return replyWith(result);
      });
    },
  });
}

/** Adds the commit to the trace of the request. */
function committed({ telemetry }: RequestContext<unknown>): OnCommitted {
  return (timings) => telemetry.addCommit(timings);
}

/** The verbatim text of a member of the body: parsing it would lose digits of numbers. */
function memberText(body: Uint8Array, name: 'metadata' | 'patch'): string {
  const scanner = new JsonScanner(body);
  scanner.findMember(name);
  const { start, end } = scanner;
  return Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8', start, end);
}

/** The schema accepts exactly one of ids, filter and all. */
function selectionOf(body: {
  ids?: readonly string[] | undefined;
  filter?: JsonObject | undefined;
}): VectorSelection {
  if (body.ids !== undefined) return { kind: 'ids', ids: [...new Set(body.ids)] };
  if (body.filter !== undefined) return { kind: 'filter', filter: body.filter };
  return { kind: 'all' };
}
