// Counts of values and summaries of numbers over the vectors that pass a filter.

import { readJsonBody } from '../ingest/parse-request.js';
import { aggregationCost, toAggregation } from '../ingest/query-request.js';
import { createRecordWriter } from '../replies/record-writer.js';
import { jsonReply } from '../replies/reply.js';
import { defineRoute, type Route, type RouteServices } from '../route.js';

export function aggregateRoutes(services: RouteServices): Route[] {
  const { database } = services;
  const schemas = services.schemas.aggregate;
  const writeReply = createRecordWriter(schemas.reply);
  return [
    defineRoute({
      method: 'POST',
      path: '/collections/{id}/aggregate',
      operationId: 'aggregateCollection',
      tag: 'Query',
      summary: 'Count values and summarize numbers',
      description:
        'Exact, from one snapshot, and the same on every machine. A vector without a value at a path (missing, null, an object, or an array without scalars) counts as missing.',
      access: { scope: 'vectors:read', on: 'path' },
      body: schemas.request,
      reply: schemas.reply,
      errors: [
        'collection_not_found',
        'collection_unavailable',
        'invalid_filter',
        'limit_exceeded',
      ],
      async handle(request) {
        const body = await readJsonBody(services, request, schemas.request);
        const aggregation = toAggregation(body);
        request.charge(Math.max(1, aggregationCost(aggregation)));
        const reply = await database
          .collection(request.params.id!)
          .aggregate(
            { filter: body.filter, ...aggregation, minSequence: body.min_sequence },
            { signal: request.signal },
          );
        const text = writeReply(reply);
        request.reserveReply(text.length);
        return jsonReply(text);
      },
    }),
  ];
}
