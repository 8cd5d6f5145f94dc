// Joins: the nearest vectors in one collection of every vector of another, or of the same one.

import { readJsonBody } from '../ingest/parse-request.js';
import { toSample } from '../ingest/query-request.js';
import { joinLines, joinTable } from '../replies/join-table.js';
import { sendRows } from '../replies/sent-rows.js';
import { COLUMN_TYPES, columnFormat } from '../replies/table-formats.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { NDJSON } from '../wire/media-types.js';
import { NO_STORE, warningsHeader } from '../wire/reply.js';

const TYPES = [NDJSON, ...COLUMN_TYPES];

/** Each row costs as much as a query. */
const costOfRows = (rowCount: number) => rowCount;

export function joinRoutes(services: RouteServices): Route[] {
  const { database, pool, schemas } = services;

  const join = defineRoute({
    method: 'POST',
    path: '/collections/{id}/join',
    operationId: 'joinCollections',
    tag: 'Query',
    summary: 'Find the nearest vectors of every vector',
    access: { scope: 'vectors:read', on: 'path' },
    description:
      'The matches of every vector of the collection, in insertion order, in the collection `with`, which requires the same scope. All matches are from one snapshot of each collection. NDJSON has a line for every vector, `{"id": …, "matches": [{"id", "score", "distance"?, "metadata"?}]}`, also without matches. An Arrow IPC stream, a Parquet file or a CSV file has a row for every match: `id` utf8, `rank` int32 from 1, `match_id` utf8, `score` float32, `distance` float32 (`euclidean` only), `metadata` utf8 (if requested), and `sequence`, `with_sequence` and `row_count` (the vectors of the collection that are joined) in the metadata of the schema of Arrow and Parquet, as in the headers `Sagitta-Sequence`, `Sagitta-With-Sequence` and `Sagitta-Row-Count`; the metadata of each record batch of Arrow, which may be empty, has in `rows_done` how many of them are done. With `unordered_pairs` each pair comes once, with the vector that was inserted first as `id`. A zero vector has no matches under `cosine`. If an error occurs after the reply has started, the connection is closed before the end of the body: an Arrow stream then has no end-of-stream marker, and NDJSON may have a last line `{"error": …}` with the problem.',
    body: schemas.scans.join,
    reply: schemas.scans.bytes,
    replyTypes: TYPES,
    sendsSequence: true,
    sendsWarnings: true,
    errors: [
      'collection_not_found',
      'collection_unavailable',
      'dimension_mismatch',
      'invalid_filter',
      'limit_exceeded',
      'collections_apart',
    ],
    parse: (request) => readJsonBody(services, request, schemas.scans.join),
    touches({ collectionInPath }, { with: name }) {
      if (name === undefined) return [collectionInPath];
      return [collectionInPath, { id: database.resolve(name), name }];
    },
    async handle(request, body) {
      const { params, signal } = request;
      const found = await database.collection(params.id).join(
        {
          ...body,
          sample: toSample(body.sample, body.seed),
          withSample: toSample(body.withSample, body.seed),
        },
        { signal },
      );
      const type = request.chooseReplyType(TYPES);
      const format = columnFormat(type);
      request.reserveWork(found.workBytes + (format?.gatheredBytes ?? 0), { isStreamed: true });
      const { includeMetadata } = body;
      return {
        status: 200,
        headers: {
          'content-type': type,
          'cache-control': NO_STORE,
          'sagitta-sequence': String(found.sequence),
          'sagitta-with-sequence': String(found.withSequence),
          'sagitta-row-count': String(found.rowCount),
          ...warningsHeader(found.warnings),
        },
        body: sendRows(request, costOfRows, (admit) => {
          const options = { includeMetadata, admit };
          return format === null
            ? joinLines(found, options)
            : format.write(joinTable(found, options), pool);
        }),
      };
    },
  });

  return [join];
}
