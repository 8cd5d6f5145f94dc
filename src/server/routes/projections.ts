// Projections: the principal components of a sample of a collection, and nearest vectors within it.

import { readJsonBody } from '../ingest/parse-request.js';
import { projectionLines, projectionTable } from '../replies/projection-table.js';
import { sendRows } from '../replies/sent-rows.js';
import { COLUMN_TYPES, columnFormat } from '../replies/table-formats.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { NDJSON } from '../wire/media-types.js';
import { NO_STORE, warningsHeader } from '../wire/reply.js';

const TYPES = [NDJSON, ...COLUMN_TYPES];

/** The number of rows that cost as much as a query without neighbours: each is read twice, sequentially. */
const ROWS_PER_QUERY = 50;

export function projectionRoutes(services: RouteServices): Route[] {
  const { database, limits, schemas } = services;

  const project = defineRoute({
    method: 'POST',
    path: '/collections/{id}/projection',
    operationId: 'projectVectors',
    tag: 'Query',
    summary: 'Project a sample onto its principal components',
    access: { scope: 'vectors:read', on: 'path' },
    description:
      'The coordinates of a sample of the vectors, from one snapshot and in insertion order, along the principal components of that sample: what a picture of a collection is drawn from. `cosine` vectors are taken with unit length. The components are those of at most 20 000 vectors of the sample, fewer if they have more than 768 elements; each is signed so that its greatest element is positive, and the same snapshot gives the same bytes. With `neighbors` each vector has the rows of its nearest within the sample, from 0, and their distances: 1 - cosine for `cosine`, else the L2 distance. NDJSON begins with a line `{"sequence", "row_count", "variance_ratios", "neighbor_metric"?}` and has a line `{"id", "coordinates", "neighbors"?, "distances"?}` for every vector; Arrow, Parquet and CSV have the columns `id` utf8, `coordinates` fixed_size_list<float32>, `neighbors` list<uint32> and `distances` list<float32>, and Arrow and Parquet have the first line as JSON texts in the metadata of the schema. `variance_ratios` are the shares of the components in the variance, 0 for those beyond its rank. If an error occurs after the reply has started, the connection is closed before the end of the body, as in an export.',
    body: schemas.scans.projection,
    reply: schemas.scans.bytes,
    replyTypes: TYPES,
    sendsSequence: true,
    sendsWarnings: true,
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter', 'limit_exceeded'],
    async handle(request) {
      const body = await readJsonBody(services, request, schemas.scans.projection);
      const type = request.chooseReplyType(TYPES);
      const format = columnFormat(type);
      const { neighbors: neighborCount, dimensions } = body;
      const hasNeighbors = neighborCount > 0;
      const found = await database.collection(request.params.id!).project(
        {
          using: body.using,
          filter: body.filter,
          sample: { count: body.sample ?? limits.projectionRowsDefault, seed: body.seed },
          dimensions,
          neighborCount,
        },
        { signal: request.signal },
      );
      request.reserveReply(found.workBytes);
      const costOf = (rowCount: number) =>
        hasNeighbors ? rowCount : Math.ceil(rowCount / ROWS_PER_QUERY);
      return {
        status: 200,
        headers: {
          'content-type': type,
          'cache-control': NO_STORE,
          'sagitta-sequence': String(found.sequence),
          ...warningsHeader(found.warnings),
        },
        body: sendRows(request, costOf, async function* (admit) {
          const options = { dimensions, hasNeighbors, admit };
          yield* format === null
            ? projectionLines(found, options)
            : format.write(await projectionTable(found, options), null);
        }),
      };
    },
  });

  return [project];
}
