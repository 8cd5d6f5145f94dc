// Which collection a request means whose path names none: the body's, else the query's, else the
// configured one.

import { refusal } from './findings.js';
import type { RouteServices } from './route.js';

/** Throws `collection_required` when nobody names one. */
export function chooseCollection(
  services: RouteServices,
  inBody: string | undefined,
  inQuery: string | undefined,
): string {
  const id = inBody ?? inQuery ?? services.defaultCollection;
  if (id !== null) return id;
  throw refusal([
    {
      pointer: '?collection',
      code: 'collection_required',
      detail:
        'Name the collection in the body or as ?collection=; the service has no default collection.',
    },
  ]);
}
