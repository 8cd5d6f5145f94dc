// Finds the collection of a request whose path names none: from the body, else the query string,
// else the configured default.

import { parameter, validationError } from '../common/errors.js';
import type { RequestContext } from './request-context.js';
import type { RouteServices } from './route.js';

/** Throws `collection_required` if none is named, and the errors of `authorize`. */
export function chooseCollection(
  services: RouteServices,
  request: RequestContext<unknown>,
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
        'Name the collection in the body or as ?collection=; no default collection is configured.',
    },
  ]);
}
