// Finds the collection of a request: behind the id or alias in the path, or where the path names none,
// from the body, else the query string, else the configured default. A page by alias that has a cursor
// is read from the collection that the cursor began with.

import { parameter, validationError } from '../../common/errors.js';
import type { NamedCollection } from '../auth/authorization.js';
import type { RequestContext } from '../requests/request-context.js';
import type { RouteServices } from '../requests/route.js';

/**
 * The id of the collection that a list or query reads, whose rows are held here. `collection`: its name in the body or
 * the query string. Throws `cursor_invalid`, and the errors of `nameCollection`.
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
 * The collection in the path or, where the path has none, the one that is named elsewhere, for which it authorizes the
 * request. Throws `collection_required` if none is named, and the errors of `authorize`.
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
