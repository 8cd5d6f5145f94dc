// Exports a collection, or the rows that pass a filter, as one file in any table format.

import { parameter, validationError } from '../../common/errors.js';
import { toSample } from '../ingest/query-request.js';
import { recordTable } from '../replies/record-columns.js';
import { sendRows } from '../replies/sent-rows.js';
import type { TableFormat } from '../replies/table.js';
import { requireVectorSupport, TABLE_FORMATS } from '../replies/table-formats.js';
import { defineRoute, type Route, type RouteServices } from '../requests/route.js';
import { FORMAT_NAMES, type FormatName } from '../wire/media-types.js';
import { NO_STORE, warningsHeader } from '../wire/reply.js';

const TYPES = FORMAT_NAMES.map((name) => TABLE_FORMATS[name].type);

/** A few chunks of 4 MiB, which are being read, written and sent. */
const CHUNKS_BYTES = 12 * 1024 * 1024;

/** The number of rows whose sequential reading costs as much as a query. */
const ROWS_PER_QUERY = 100;

export function exportRoutes(services: RouteServices): Route[] {
  const { database, pool, schemas } = services;
  const { scans } = schemas;

  const exportVectors = defineRoute({
    method: 'GET',
    path: '/collections/{id}/export',
    operationId: 'exportVectors',
    tag: 'Vectors',
    summary: 'Read all vectors as one file',
    access: { scope: 'vectors:read', on: 'path' },
    description:
      'All vectors, those that pass the filter or a `sample` of these, from one snapshot, in insertion order. The reply is streamed. An Arrow IPC stream, a Parquet file or a CSV file has the columns `id` utf8, `values` fixed_size_list<float32> (in Parquet a list of floats, with the Arrow schema beside it) and `metadata` utf8, the JSON as it was sent (or a column for each metadata path with `metadata=columns`), and for each named vector a column `vectors.<name>` like `values`, null where a vector does not have it, and for each sparse vector lists `sparse_vectors.<name>.indices` and `sparse_vectors.<name>.values`, empty where a vector does not have it (not in Parquet, which is refused with them); the schema\'s metadata has the `sequence`. In CSV text is quoted and numbers are not, lists and metadata are JSON in a quoted cell, and nulls are empty cells. NDJSON has one vector per line, in the form that writing vectors accepts, with the metadata on one line. If an error occurs after the reply has started, the connection is closed before the end of the body: an Arrow stream then has no end-of-stream marker, a Parquet file no footer, and NDJSON may have a last line `{"error": …}` with the problem.',
    query: scans.exportQuery,
    body: null,
    reply: scans.bytes,
    replyTypes: TYPES,
    sendsSequence: true,
    sendsWarnings: true,
    sendsFile: true,
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter', 'limit_exceeded'],
    async handle(request) {
      const { query, params, signal } = request;
      const name = query.format ?? nameOf(request.chooseReplyType(TYPES));
      const format: TableFormat = TABLE_FORMATS[name];
      const { type, extension, chunkBytesMax, gatheredBytes = 0 } = format;
      request.chooseReplyType([type]);
      const { includeValues, includeMetadata } = query;
      const hasTypedMetadata = query.metadata === 'columns';
      if (!format.hasColumns && hasTypedMetadata) throw noColumns();
      const collection = database.collection(params.id);
      if (includeValues) requireVectorSupport(collection.vectors, format, parameter('format'));
      const scan = await collection.scan(
        {
          includeValues,
          includeMetadata,
          hasTypedMetadata,
          filter: query.filter,
          sample: toSample(query.sample, query.seed),
          chunkBytesMax,
        },
        { signal },
      );
      const workBytes = Math.min(scan.byteCount, CHUNKS_BYTES + gatheredBytes);
      request.reserveWork(workBytes, { isStreamed: true });
      const options = {
        includeValues,
        hasMetadataText: includeMetadata && !hasTypedMetadata,
      };
      const costOf = (rowCount: number) => Math.ceil(rowCount / ROWS_PER_QUERY);
      return {
        status: 200,
        headers: {
          'content-type': type,
          'cache-control': NO_STORE,
          'content-disposition': `attachment; filename="${params.id}.${extension}"`,
          'sagitta-sequence': String(scan.sequence),
          ...warningsHeader(scan.warnings),
        },
        body: sendRows(request, costOf, (admit) =>
          format.write(recordTable(scan, { ...options, admit }), pool),
        ),
      };
    },
  });

  return [exportVectors];
}

function noColumns() {
  const detail =
    'Found metadata=columns with NDJSON, which has no columns. Use the format arrow, parquet or csv.';
  return validationError([{ location: parameter('metadata'), code: 'invalid_request', detail }]);
}

function nameOf(type: string): FormatName {
  return FORMAT_NAMES.find((name) => TABLE_FORMATS[name].type === type)!;
}
