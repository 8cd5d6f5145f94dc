// Grades the results of another system or index against the exact ones.

import { field, validationError } from '../../common/errors.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

export function recallRoutes(services: RouteServices): Route[] {
  const { database } = services;
  const schemas = services.schemas.query;
  return [
    defineJsonRoute(services, {
      method: 'POST',
      path: '/collections/{id}/recall',
      operationId: 'measureRecall',
      tag: 'Query',
      summary: 'Grade the results of another search',
      description:
        'For each query, the share of the given ids that are correct: whose exact score is at least that of the exact k-th nearest vector, where k is the length of the list. Ties count as correct. An id that does not exist, or does not pass the filter, is incorrect; a repeated id counts once.',
      access: { scope: 'vectors:read', on: 'path' },
      body: schemas.recall,
      vectorsAt: 'vectors',
      reply: schemas.recallReply,
      errors: [
        'collection_not_found',
        'collection_unavailable',
        'dimension_mismatch',
        'invalid_vector',
        'invalid_filter',
        'limit_exceeded',
      ],
      async handle(request, body) {
        const { vectors, ids } = body;
        if (vectors.length !== ids.length) {
          const detail = `Expected as many lists as vectors, ${vectors.length}; found ${ids.length}.`;
          const bound = { expected: vectors.length, actual: ids.length };
          throw validationError([
            { location: field('ids'), code: 'invalid_request', detail, ...bound },
          ]);
        }
        request.charge(vectors.length);
        const { recalls, sequence, warnings } = await database
          .collection(request.params.id!)
          .recall(body, { signal: request.signal });
        const k = ids[0]!.length;
        return {
          recall: recalls.reduce((sum, recall) => sum + recall, 0) / recalls.length,
          queryCount: recalls.length,
          k: ids.every((list) => list.length === k) ? k : undefined,
          recalls,
          sequence,
          warnings,
        };
      },
    }),
  ];
}
