// Describe the metadata of the vectors that pass a filter: counts of values, summaries of numbers, and existing paths.

import { aggregationCost } from '../ingest/query-request.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

export function aggregateRoutes(services: RouteServices): Route[] {
  return [aggregateCollection(services), getSchema(services)];
}

function aggregateCollection(services: RouteServices): Route {
  const { database } = services;
  const schemas = services.schemas.aggregate;
  return defineJsonRoute(services, {
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
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter', 'limit_exceeded'],
    handle(request, body) {
      request.charge(Math.max(1, aggregationCost(body)));
      const { params, signal } = request;
      return database.collection(params.id!).aggregate(body, { signal });
    },
  });
}

function getSchema(services: RouteServices): Route {
  const { database } = services;
  const schemas = services.schemas.aggregate;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/collections/{id}/schema',
    operationId: 'getCollectionSchema',
    tag: 'Collections',
    summary: 'Show the metadata paths of the vectors',
    description:
      'The paths in the metadata of the vectors, with the types and ranges of their values. Nested members are paths with dots. Returned in pages in the order of the paths.',
    access: { scope: 'vectors:read', on: 'path' },
    query: schemas.schemaQuery,
    body: null,
    reply: schemas.foundSchema,
    errors: ['collection_not_found', 'collection_unavailable', 'invalid_filter', 'limit_exceeded'],
    handle: ({ params, query, signal }) =>
      database.collection(params.id!).schema(query, { signal }),
  });
}
