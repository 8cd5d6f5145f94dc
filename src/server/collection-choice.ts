// Finds the collection of a request: behind the id or alias in the path, or where the path names none,
// from the body, else the query string, else the configured default. A page by alias that has a cursor
// is read from the collection that the cursor began with.

import { parameter, validationError } from '../common/errors.js';
import type { RequestContext } from './request-context.js';
import type { RouteServices } from './route.js';

/**
 * The id of the collection that the request names outside its path. Throws `collection_required` if
 * none is named, `cursor_invalid`, and the errors of `authorize`.
 */
export function chooseCollection(
  services: RouteServices,
  request: RequestContext<unknown>,
  named: {
    readonly inBody: string | undefined;
    readonly inQuery: string | undefined;
    /** Of a list or query; undefined for other requests. */
    readonly cursor?: string | undefined;
  },
): string {
  const name = named.inBody ?? named.inQuery ?? services.defaultCollection;
  if (name !== null) {
    const id = services.database.resolve(name);
    request.authorize(id, { name });
    return continued(services, request, { id, name }, named.cursor);
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

/** The id of the collection in the path, for a list or query. Throws as `chooseCollection`. */
export function collectionInPath(
  services: RouteServices,
  request: RequestContext<unknown>,
  cursor: string | undefined,
): string {
  const named = { id: request.params.id!, name: request.collectionName };
  return continued(services, request, named, cursor);
}

function continued(
  { database }: RouteServices,
  request: RequestContext<unknown>,
  { id, name }: { readonly id: string; readonly name: string },
  cursor: string | undefined,
): string {
  if (cursor === undefined || id === name) return id;
  const began = database.collectionOfCursor(cursor);
  if (began === undefined || began === id) return id;
  request.authorize(began, { name });
  request.requireHeld([began]);
  return began;
}
