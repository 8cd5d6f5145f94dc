// Which collection a request means whose path names none: the body's, else the query's, else the
// configured one.

import { parameter, validationError } from '../common/errors.js';
import type { RouteRequest, RouteServices } from './route.js';

/** Throws `collection_required` when nobody names one, and what `authorize` throws. */
export function chooseCollection(
  services: RouteServices,
  request: RouteRequest<unknown>,
  inBody: string | undefined,
  inQuery: string | undefined,
): string {
  const id = inBody ?? inQuery ?? services.defaultCollection;
  if (id !== null) {
    request.authorize(id);
    return id;
  }
  throw validationError([
    {
      location: parameter('collection'),
      code: 'collection_required',
      detail:
        'Name the collection in the body or as ?collection=; the service has no default collection.',
    },
  ]);
}
