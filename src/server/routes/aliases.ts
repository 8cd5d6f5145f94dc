// Aliases of collections: list, read, set, change several at once, delete. Requests by alias are authorized for its
// collection. Setting an alias also requires the scope on its name.

import { z } from 'zod';
import { holdsScopeOn, maySeeCollection } from '../../common/access.js';
import { field, SagittaError, validationError } from '../../common/errors.js';
import type { AliasChange, AliasRecord } from '../../database/api/database-api.js';
import type { RequestContext } from '../requests/request-context.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

const CHANGE_ERRORS = [
  'collection_not_found',
  'collection_exists',
  'limit_exceeded',
  'storage_full',
] as const;

export function aliasRoutes(services: RouteServices): Route[] {
  return [
    listAliases(services),
    changeAliases(services),
    getAlias(services),
    putAlias(services),
    deleteAlias(services),
  ];
}

function listAliases(services: RouteServices): Route {
  const { database } = services;
  const { aliases, basics } = services.schemas;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/aliases',
    operationId: 'listAliases',
    tag: 'Collections',
    summary: 'List aliases in the order of their names',
    description: 'Lists the aliases of the collections that the credential may see.',
    access: { scope: 'collections:read', on: 'visible' },
    query: z.strictObject({ limit: basics.limit, cursor: basics.cursor }),
    body: null,
    reply: aliases.list,
    errors: ['cursor_invalid', 'limit_exceeded'],
    handle({ principal, query }) {
      const isVisible = (id: string) => holdsScopeOn(principal, 'collections:read', id);
      return database.listAliases({ ...query, isVisible });
    },
  });
}

function getAlias(services: RouteServices): Route {
  const { aliases } = services.schemas;
  return defineJsonRoute(services, {
    method: 'GET',
    path: '/aliases/{name}',
    operationId: 'getAlias',
    tag: 'Collections',
    summary: 'Read an alias',
    access: { scope: 'collections:read', on: 'named' },
    body: null,
    reply: aliases.record,
    errors: ['alias_not_found'],
    handle: (request) => requireAlias(services, request),
  });
}

function putAlias(services: RouteServices): Route {
  const { aliases } = services.schemas;
  return defineJsonRoute(services, {
    method: 'PUT',
    path: '/aliases/{name}',
    operationId: 'putAlias',
    audit: 'alias.set',
    tag: 'Collections',
    summary: 'Create an alias, or point it to another collection',
    description: 'Requires the scope on the name, and on the collections before and after.',
    access: { scope: 'collections:write', on: 'named' },
    body: aliases.set,
    reply: aliases.record,
    errors: CHANGE_ERRORS,
    async handle(request, { collection }) {
      const name = checkName(services, request.params.name!);
      const changes = [{ name, collection }];
      const [record] = await setAliases(services, request, changes, (_, member) => field(member));
      return record!;
    },
  });
}

function changeAliases(services: RouteServices): Route {
  const { aliases } = services.schemas;
  return defineJsonRoute(services, {
    method: 'POST',
    path: '/aliases',
    operationId: 'changeAliases',
    audit: 'alias.change',
    tag: 'Collections',
    summary: 'Set and remove several aliases at once',
    description:
      'All changes take effect at the same moment, or none does. Requires the scope on every name, and on the collections before and after. The request can be repeated safely.',
    access: { scope: 'collections:write', on: 'named' },
    body: aliases.change,
    reply: aliases.changed,
    errors: CHANGE_ERRORS,
    async handle(request, { aliases: changes }) {
      checkDistinct(changes);
      request.charge(changes.length);
      const records = await setAliases(services, request, changes, (index, member) =>
        field('aliases', index, member),
      );
      return { aliases: records };
    },
  });
}

function deleteAlias(services: RouteServices): Route {
  const { aliases } = services.schemas;
  return defineJsonRoute(services, {
    method: 'DELETE',
    path: '/aliases/{name}',
    operationId: 'deleteAlias',
    audit: 'alias.delete',
    tag: 'Collections',
    summary: 'Delete an alias; the collection remains',
    access: { scope: 'collections:write', on: 'named' },
    body: null,
    reply: aliases.deleted,
    errors: ['alias_not_found', 'storage_full'],
    async handle(request) {
      const { name } = requireAlias(services, request);
      await setAliases(services, request, [{ name, collection: null }], () => field());
      return { name, deleted: true };
    },
  });
}

/** Throws `alias_not_found`, also if the principal must not see the collection. */
function requireAlias({ database }: RouteServices, request: RequestContext<unknown>): AliasRecord {
  const name = request.params.name!;
  const alias = database.alias(name);
  if (alias === undefined || !maySeeCollection(request.principal, alias.collection)) {
    throw new SagittaError('alias_not_found', `There is no alias "${name}".`);
  }
  request.authorize(alias.collection);
  return alias;
}

function checkName({ schemas }: RouteServices, name: string): string {
  if (schemas.aliases.name.safeParse(name).success) return name;
  throw new SagittaError(
    'invalid_request',
    `The name of an alias consists of 1 to 128 letters, digits, "_", "." and "-", and does not begin with "." or "-"; found ${JSON.stringify(name)}.`,
  );
}

function checkDistinct(changes: readonly AliasChange[]): void {
  const names = changes.map(({ name }) => name);
  const repeated = names.findIndex((name, index) => names.indexOf(name) < index);
  if (repeated < 0) return;
  const detail = `Expected distinct names; found the alias "${names[repeated]}" twice.`;
  const location = field('aliases', repeated, 'name');
  throw validationError([{ location, code: 'invalid_request', detail }]);
}

/** Also authorizes the request for every name and collection of the changes. */
async function setAliases(
  { database }: RouteServices,
  request: RequestContext<unknown>,
  changes: readonly AliasChange[],
  locate: Parameters<RouteServices['database']['setAliases']>[1]['locate'],
): Promise<readonly AliasRecord[]> {
  for (const { name } of changes) request.authorize(name, { isNew: true });
  const authorize = (id: string, name: string) => request.authorize(id, { name });
  const records = await database.setAliases(changes, { authorize, locate });
  request.telemetry.setAuditTarget(changes.map(({ name }) => name).join(' '));
  return records;
}
