// Whether a principal may do what it asks: what every route needs, said with the route and checked
// in one place. What a principal may not see does not exist for it (404); what it sees and may not
// do is refused by name (403).

import {
  holdsScope,
  holdsScopeEverywhere,
  holdsScopeOn,
  NOBODY,
  type Principal,
  type Scope,
  seesCollection,
} from '../../common/access.js';
import { collectionNotFound, SagittaError } from '../../common/errors.js';

/**
 * What a route asks of who calls it.
 *
 * `public`: nothing. `anyone`: to be known. With a scope, `on` says for what: the collection `{id}`
 * in the path; the one that the handler finds in the body or the query (`named`) and hands to
 * `authorize`; whichever collections the principal sees (`visible`), of which the handler tells; or
 * the `service` as a whole.
 */
export type RouteAccess =
  | 'public'
  | 'anyone'
  | { readonly scope: Scope; readonly on: 'path' | 'named' | 'visible' | 'service' };

/**
 * What the head of a request tells. Throws `credentials_missing`, `insufficient_scope` and
 * `collection_not_found`.
 */
export function authorizeRoute(
  access: RouteAccess,
  principal: Principal,
  params: Readonly<Record<string, string>>,
): void {
  if (access === 'public') return;
  if (principal === NOBODY) {
    throw new SagittaError(
      'credentials_missing',
      'This needs a credential: an API key or an access token as "Authorization: Bearer", or a client certificate.',
    );
  }
  if (access === 'anyone') return;
  const { scope, on } = access;
  if (on === 'path') authorizeCollection(scope, principal, params.id!);
  else if (on === 'service' && !holdsScopeEverywhere(principal, scope)) throw lacks(scope);
  else if (!holdsScope(principal, scope)) throw lacks(scope);
}

/** Throws `insufficient_scope`, and `collection_not_found` for what the principal may not see. */
export function authorizeCollection(
  scope: Scope,
  principal: Principal,
  collectionId: string,
): void {
  if (holdsScopeOn(principal, scope, collectionId)) return;
  throw seesCollection(principal, collectionId)
    ? lacks(scope, collectionId)
    : collectionNotFound(collectionId);
}

/** For a collection that shall be made: there is nothing yet that could be hidden. */
export function authorizeCreation(scope: Scope, principal: Principal, collectionId: string): void {
  if (!holdsScopeOn(principal, scope, collectionId)) throw lacks(scope, collectionId);
}

function lacks(scope: Scope, collectionId?: string): SagittaError {
  const place = collectionId === undefined ? '' : ` on the collection "${collectionId}"`;
  return new SagittaError('insufficient_scope', `This needs the scope ${scope}${place}.`, {
    scope,
  });
}
