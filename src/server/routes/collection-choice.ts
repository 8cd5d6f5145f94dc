// Determines the collection of a request from the path, else the body, else the query string, else the configured
// default. A page with a cursor is read from the collection that the cursor began with, even if the alias has been
// moved. The pipeline authorizes requests for collections outside the path.

import { parameter, validationError } from '../../common/errors.js';
import type { NamedCollection } from '../auth/authorization.js';
import type { RequestContext } from '../requests/request-context.js';
import type { RouteServices } from '../requests/route.js';

/**
 * The collection that a list or query reads. `collection` is its name in the body or the query string. Throws
 * `cursor_invalid` and `collection_required`.
 */
export function collectionToRead(
  services: RouteServices,
  request: RequestContext<unknown>,
  {
    collection,
    cursor,
  }: { readonly collection?: string | undefined; readonly cursor?: string | undefined },
): NamedCollection {
  const { id, name } = nameCollection(services, request, collection);
  const isContinued = cursor !== undefined && id !== name;
  const began = isContinued ? services.database.collectionOfCursor(cursor) : undefined;
  return { id: began ?? id, name };
}

/** The collection in the path; if there is none, the one given or the default. Throws `collection_required`. */
export function nameCollection(
  { database, defaultCollection }: RouteServices,
  request: RequestContext<unknown>,
  collection: string | undefined,
): NamedCollection {
  if (request.collectionName !== '') return request.collectionInPath;
  const name = collection ?? defaultCollection;
  if (name !== null) return { id: database.resolve(name), name };
  throw validationError([
    {
      location: parameter('collection'),
      code: 'collection_required',
      detail:
        'Name the collection in the body or as ?collection=; no default collection is configured.',
    },
  ]);
}
