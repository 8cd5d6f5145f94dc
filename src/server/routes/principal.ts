// Describes the caller and what its credential permits, so that a client can offer only what will work.

import type { ApiKeyRecord } from '../../database/admin/api-keys.js';
import type { Route, RouteServices } from '../requests/route.js';
import type { PrincipalKind } from '../schemas/principal.js';
import { defineJsonRoute } from './json-route.js';

const KEY_PREFIX = 'key:';

export function principalRoutes(services: RouteServices): Route[] {
  const { authenticator, backups, database } = services;
  const keyOf = (principalId: string): ApiKeyRecord | null =>
    principalId.startsWith(KEY_PREFIX)
      ? database.apiKeys.get(principalId.slice(KEY_PREFIX.length))
      : null;
  return [
    defineJsonRoute(services, {
      method: 'GET',
      path: '/principal',
      operationId: 'getPrincipal',
      tag: 'Keys',
      summary: 'Describe the caller and its permissions',
      access: 'anyone',
      body: null,
      reply: services.schemas.principal.record,
      errors: [],
      isAlwaysServed: true,
      handle: ({ principal }) => ({
        id: principal.id,
        kind: kindOf(principal.id),
        grants: principal.grants,
        credentialsRequired: authenticator.isRequired,
        backupsConfigured: backups.isConfigured,
        key: keyOf(principal.id),
      }),
    }),
  ];
}

/** The id of a principal begins with its kind. */
function kindOf(principalId: string): PrincipalKind {
  return principalId.split(':', 1)[0] as PrincipalKind;
}
