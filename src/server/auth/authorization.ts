// Authorization: every route declares the scope that it requires, which is checked here. A collection
// that the principal may not see does not exist for it (404); if it may see the collection but lacks
// the scope, the error names the scope (403).

import {
  holdsScope,
  holdsScopeEverywhere,
  holdsScopeOn,
  maySeeCollection,
  NOBODY,
  type Principal,
  type Scope,
} from '../../common/access.js';
import { collectionNotFound, SagittaError } from '../../common/errors.js';

/**
 * What a route requires of the principal: nothing (`public`), any credential (`anyone`), or a scope.
 * `on` is what the scope must apply to: the collection `{id}` in the path; the collection that the
 * body or the query names, which `touches` of the route returns or its handler passes to `authorize` (`named`); any collection, where
 * the reply lists those that the principal may see (`visible`); or the whole `service`.
 */
export type RouteAccess =
  | 'public'
  | 'anyone'
  | { readonly scope: Scope; readonly on: 'path' | 'named' | 'visible' | 'service' };

/**
 * Checks everything that the headers of a request determine. `collection` is the one in the path, if any. Throws
 * `credentials_missing`, `insufficient_scope` and `collection_not_found`.
 */
export function authorizeRoute(
  access: RouteAccess,
  principal: Principal,
  collection: NamedCollection,
): void {
  if (access === 'public') return;
  if (principal === NOBODY) {
    throw new SagittaError(
      'credentials_missing',
      'A credential is required: an API key or access token as "Authorization: Bearer <token>", or a client certificate.',
    );
  }
  if (access === 'anyone') return;
  const { scope, on } = access;
  if (on === 'path') authorizeCollection(scope, principal, collection);
  else if (on === 'service' && !holdsScopeEverywhere(principal, scope)) throw lacks(scope);
  else if (!holdsScope(principal, scope)) throw lacks(scope);
}

/** A collection, and the id or alias by which the request and its errors name it. */
export interface NamedCollection {
  readonly id: string;
  readonly name: string;
}

/** Throws `insufficient_scope`, and `collection_not_found` if the principal may not see it. */
export function authorizeCollection(
  scope: Scope,
  principal: Principal,
  { id, name }: NamedCollection,
): void {
  if (holdsScopeOn(principal, scope, id)) return;
  throw maySeeCollection(principal, id) ? lacks(scope, id) : collectionNotFound(name);
}

/** For a collection to be created, whose existence is not a secret. Throws `insufficient_scope`. */
export function authorizeCreation(
  scope: Scope,
  principal: Principal,
  { id }: NamedCollection,
): void {
  if (!holdsScopeOn(principal, scope, id)) throw lacks(scope, id);
}

function lacks(scope: Scope, collectionId?: string): SagittaError {
  const place = collectionId === undefined ? '' : ` on the collection "${collectionId}"`;
  return new SagittaError(
    'insufficient_scope',
    `The request requires the scope ${scope}${place}.`,
    {
      scope,
    },
  );
}
