// Lists the newest audit events for administrators.

import { z } from 'zod';
import type { AuditOutcome } from '../../common/audit.js';
import { parameter, validationError } from '../../common/errors.js';
import type { AuditEvent } from '../../database/admin/audit-log.js';
import type { Route, RouteServices } from '../requests/route.js';
import { defineJsonRoute } from './json-route.js';

export function auditRoutes(services: RouteServices): Route[] {
  const { database, limits } = services;
  const { filter, cursor: cursorSchema, list } = services.schemas.audit;
  const query = filter.extend({ cursor: cursorSchema });
  /** The content of a cursor, which needs no seal, since it contains only what the client knows. */
  const position = z.strictObject({ filter, before: z.int().min(1) });

  return [
    defineJsonRoute(services, {
      method: 'GET',
      path: '/audit',
      operationId: 'listAuditEvents',
      tag: 'Keys',
      summary: 'List the newest audit events',
      description:
        'Every change to collections, aliases, keys and backups, including failed attempts. The newest events are kept across restarts; the log of the server is the complete record.',
      access: { scope: 'admin', on: 'service' },
      query,
      body: null,
      reply: list,
      errors: ['cursor_invalid', 'cursor_mismatch', 'limit_exceeded'],
      handle({ query: { cursor: token, ...requested } }) {
        const cursor = token === undefined ? null : readToken(token, position);
        if (cursor !== null) requireSameFilter(requested, cursor.filter);
        const chosen = { ...cursor?.filter, ...requested };
        const page = database.audit.list({
          before: cursor?.before ?? Number.POSITIVE_INFINITY,
          limit: chosen.limit ?? limits.pageLimitDefault,
          matches: predicateOf(chosen),
        });
        const last = page.events.at(-1);
        const { sinceMs } = database.audit;
        return {
          events: page.events.map(toRecord),
          hasMore: page.hasMore,
          nextCursor: page.hasMore
            ? writeToken({ filter: chosen, before: last!.sequence })
            : undefined,
          total: page.total,
          since: sinceMs === null ? null : new Date(sinceMs).toISOString(),
        };
      },
    }),
  ];
}

interface AuditFilter {
  readonly principal?: string | undefined;
  /** An operation, or a kind of object for all operations on it. */
  readonly operation?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
  readonly target?: string | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

function predicateOf(filter: AuditFilter): (event: AuditEvent) => boolean {
  const { principal, operation, outcome, target, since, until } = filter;
  const fromMs = since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since);
  const toMs = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
  return (event) =>
    (principal === undefined || event.principal === principal) &&
    (operation === undefined || `${event.operation}.`.startsWith(`${operation}.`)) &&
    (outcome === undefined || outcomeOf(event.status) === outcome) &&
    (target === undefined || event.target === target) &&
    event.atMs >= fromMs &&
    event.atMs < toMs;
}

function toRecord(event: AuditEvent) {
  return {
    ...event,
    time: new Date(event.atMs).toISOString(),
    outcome: outcomeOf(event.status),
  };
}

function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return 'succeeded';
  return status < 500 ? 'refused' : 'failed';
}

function writeToken(position: object): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Throws `cursor_invalid`. */
function readToken<Position extends z.ZodType>(
  token: string,
  schema: Position,
): z.output<Position> {
  try {
    return schema.parse(JSON.parse(Buffer.from(token, 'base64url').toString()));
  } catch {
    const detail = 'The cursor was not issued by this service.';
    throw validationError([{ location: parameter('cursor'), code: 'cursor_invalid', detail }]);
  }
}

/** Throws `cursor_mismatch`. The page size may change from page to page, but not the filter. */
function requireSameFilter(
  requested: AuditFilter & { readonly limit?: number | undefined },
  earlier: object,
) {
  for (const [name, value] of Object.entries(requested)) {
    const first = (earlier as Readonly<Record<string, unknown>>)[name];
    if (name === 'limit' || value === undefined || value === first) continue;
    const detail = `The cursor belongs to a list with ${first === undefined ? 'no' : 'another'} ${name}; send the cursor alone.`;
    throw validationError([{ location: parameter(name), code: 'cursor_mismatch', detail }]);
  }
}
