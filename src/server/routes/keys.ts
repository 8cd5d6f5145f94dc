// API keys: create, list, read, rotate, revoke. The writes take no idempotency key, since a stored reply would
// contain the secret, which is stored nowhere. A client that loses a reply revokes the key and creates another.

import { EVERYBODY, OPERATOR, type Principal } from '../../common/access.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

const COMMON = { tag: 'Keys', access: { scope: 'admin', on: 'service' } } as const;

export function keyRoutes(services: RouteServices): Route[] {
  return [createRoute(services), ...readRoutes(services), ...changeRoutes(services)];
}

function createRoute(services: RouteServices): Route {
  const { database } = services;
  const schemas = services.schemas.keys;
  return defineJsonRoute(services, {
    ...COMMON,
    method: 'POST',
    path: '/keys',
    operationId: 'createKey',
    summary: 'Create an API key',
    description:
      'Only this reply contains the key itself. Once a key exists, every request needs a credential; the first key, if it is created without one, must therefore have the scope `admin` and neither expiry, origins nor rate limit. The request is not idempotent: if the reply is lost, revoke the key.',
    body: schemas.create,
    reply: schemas.secretRecord,
    audit: 'key.create',
    errors: ['limit_exceeded', 'would_lock_out', 'storage_full'],
    async handle({ principal, telemetry }, input) {
      const byAnyone = principal === EVERYBODY;
      const { record, key } = await database.apiKeys.create(input, { byAnyone });
      telemetry.setAuditTarget(record.id);
      return { ...record, key };
    },
  });
}

function readRoutes(services: RouteServices): Route[] {
  const { database } = services;
  const schemas = services.schemas.keys;
  const list = defineJsonRoute(services, {
    ...COMMON,
    method: 'GET',
    path: '/keys',
    operationId: 'listKeys',
    summary: 'List API keys in the order of their creation',
    description: 'Includes expired and revoked keys.',
    body: null,
    reply: schemas.list,
    errors: [],
    handle: () => ({ keys: database.apiKeys.list() }),
  });

  const get = defineJsonRoute(services, {
    ...COMMON,
    method: 'GET',
    path: '/keys/{key_id}',
    operationId: 'getKey',
    summary: 'Read the record of an API key',
    body: null,
    reply: schemas.record,
    errors: ['key_not_found'],
    handle: ({ params }) => database.apiKeys.get(params.key_id),
  });

  return [list, get];
}

function changeRoutes(services: RouteServices): Route[] {
  const { database, authenticator } = services;
  const schemas = services.schemas.keys;
  /** The operator can always create another key on the control socket. */
  const keepsAdministrator = (principal: Principal) =>
    principal !== OPERATOR && !authenticator.acceptsOthers;

  const rotate = defineJsonRoute(services, {
    ...COMMON,
    method: 'POST',
    path: '/keys/{key_id}/rotate',
    operationId: 'rotateKey',
    summary: 'Give an API key a new secret',
    description:
      'Everything else is unchanged: id, owner, scopes, expiry, origins and rate limit. The old secret is rejected immediately, or after `grace_seconds`. For the last key that can manage the service, `grace_seconds` is at least 60, so that it can be rotated again if the reply is lost, unless access tokens or client certificates are configured. Revoked and expired keys are not found.',
    body: schemas.rotate,
    reply: schemas.secretRecord,
    audit: 'key.rotate',
    errors: ['key_not_found', 'limit_exceeded', 'would_lock_out', 'storage_full'],
    async handle({ params, principal }, { graceSeconds }) {
      const { record, key } = await database.apiKeys.rotate(params.key_id, {
        graceMs: graceSeconds * 1000,
        keepsAdministrator: keepsAdministrator(principal),
      });
      return { ...record, key };
    },
  });

  const revoke = defineJsonRoute(services, {
    ...COMMON,
    method: 'DELETE',
    path: '/keys/{key_id}',
    operationId: 'revokeKey',
    summary: 'Revoke an API key permanently',
    description:
      'When the reply is sent, the key is rejected everywhere, including open connections. The last key that can manage the service (scope `admin`, if possible without an expiry, origins and a rate limit) cannot be revoked, unless access tokens or client certificates are configured.',
    body: null,
    reply: schemas.record,
    audit: 'key.revoke',
    errors: ['key_not_found', 'would_lock_out', 'storage_full'],
    handle: ({ params, principal }) =>
      database.apiKeys.revoke(params.key_id, { keepsAdministrator: keepsAdministrator(principal) }),
  });

  return [rotate, revoke];
}
