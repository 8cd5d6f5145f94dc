// Requests and replies about the audit events of the service.

import { z } from 'zod';
import { AUDIT_KINDS, AUDIT_OPERATIONS, AUDIT_OUTCOMES } from '../../common/audit.js';
import type { Limits } from '../../common/limits.js';
import { type BasicSchemas, count, page, status } from './basics.js';

const outcome = z.enum(AUDIT_OUTCOMES).meta({
  id: 'AuditOutcome',
  description:
    '`refused`: the request was wrong or not permitted (4xx); `failed`: the service could not do it (5xx).',
  examples: ['succeeded'],
});

const example = {
  sequence: 17,
  time: '2026-11-21T08:00:00.000Z',
  operation: 'collection.delete',
  outcome: 'refused',
  principal: 'key:3kTMd9xQ7bZr2LfW',
  client: '192.0.2.7',
  via: null,
  target: 'articles',
  status: 403,
  request_id: 'b1f0c2d4-5',
  trace_id: null,
  unlogged_count: 0,
} as const;

const event = z
  .object({
    sequence: count('The number of the event in the data directory.'),
    time: z.iso.datetime().meta({ description: 'When it happened.' }),
    operation: z.enum(AUDIT_OPERATIONS).meta({ description: 'The kind of object and the action.' }),
    outcome,
    principal: z
      .string()
      .meta({ description: 'The id of the principal, as `GET /principal` returns it.' }),
    client: z.string().meta({
      description: 'The address of the client; `local` for the socket in the data directory.',
    }),
    via: z.string().nullable().meta({
      description:
        'The node of the cluster that received the request, if it forwarded it to this node.',
    }),
    target: z.string().nullable().meta({
      description: 'The id or name of the object, if the request named one.',
    }),
    status,
    request_id: z.string().meta({ description: 'The `X-Request-Id` of the request.' }),
    trace_id: z
      .string()
      .nullable()
      .meta({ description: 'The trace that the request belongs to; null without one.' }),
    unlogged_count: count(
      'The number of omitted attempts without a valid credential before this one.',
    ),
  })
  .meta({
    id: 'AuditEvent',
    description: 'An operation on the service that was carried out or attempted.',
    examples: [example],
  });

export function auditSchemas(limits: Limits, basics: BasicSchemas) {
  const time = z.iso
    .datetime({ offset: true })
    .optional()
    .meta({ examples: ['2026-11-21T08:00:00Z'] });
  return {
    /** The members that a cursor contains. */
    filter: z.strictObject({
      principal: z
        .string()
        .min(1)
        .optional()
        .meta({ description: 'Only events of this principal.', examples: [example.principal] }),
      operation: z
        .enum([...AUDIT_OPERATIONS, ...AUDIT_KINDS])
        .optional()
        .meta({ description: 'Only this operation, or all operations on this kind of object.' }),
      outcome: outcome.optional().meta({ description: 'Only events with this outcome.' }),
      target: z
        .string()
        .min(1)
        .optional()
        .meta({
          description: 'Only events on this object: the id of a collection or key, or an alias.',
          examples: [example.target],
        }),
      since: time.meta({ description: 'Only events at or after this time.' }),
      until: time.meta({ description: 'Only events before this time.' }),
      limit: basics.limit,
    }),
    cursor: basics.cursor,
    list: z
      .object({
        events: z.array(event).meta({ description: 'Newest first.' }),
        ...page,
        total: count('The number of kept events that match.'),
        since: z.iso
          .datetime()
          .nullable()
          .meta({
            description: `The time of the oldest kept event; null if there is none. The newest ${limits.auditEventsMax} are kept.`,
          }),
      })
      .meta({
        id: 'AuditList',
        description: 'A page of the audit events.',
        examples: [{ events: [example], has_more: false, total: 1, since: example.time }],
      }),
  };
}
