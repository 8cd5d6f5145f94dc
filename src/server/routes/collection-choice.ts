// Determines the collection of a request from the path, else the body, else the query string, else the configured
// default. A page with a cursor is read from the collection that the cursor began with, even if the alias has been
// moved.

import { parameter, validationError } from '../../common/errors.js';
import type { NamedCollection } from '../auth/authorization.js';
import type { RequestContext } from '../requests/request-context.js';
import type { RouteServices } from '../requests/route.js';

/**
 * The id of the collection that a list or query reads, whose rows this node holds. `collection` is its name in the
 * body or the query string. Throws `cursor_invalid`, and the errors of `nameCollection`.
 */
export function collectionToRead(
  services: RouteServices,
  request: RequestContext<unknown>,
  {
    collection,
    cursor,
  }: { readonly collection?: string | undefined; readonly cursor?: string | undefined },
): string {
  const { id, name } = nameCollection(services, request, collection);
  const isContinued = cursor !== undefined && id !== name;
  const began = (isContinued ? services.database.collectionOfCursor(cursor) : undefined) ?? id;
  if (began !== id) request.authorize(began, { name });
  request.requireRows([began]);
  return began;
}

/**
 * The collection in the path. If the path names none, the collection given or the default, for which the request is
 * authorized. Throws `collection_required`, and the errors of `authorize`.
 */
export function nameCollection(
  { database, defaultCollection }: RouteServices,
  request: RequestContext<unknown>,
  collection: string | undefined,
): NamedCollection {
  const inPath = request.collectionName;
  if (inPath !== '') return { id: request.params.id!, name: inPath };
  const name = collection ?? defaultCollection;
  if (name !== null) {
    const id = database.resolve(name);
    request.authorize(id, { name });
    return { id, name };
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
