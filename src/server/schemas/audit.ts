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
    sequence: count('Counts the events of the data directory.'),
    time: z.iso.datetime().meta({ description: 'When it happened.' }),
    operation: z
      .enum(AUDIT_OPERATIONS)
      .meta({ description: 'What the operation is about, and what was done with it.' }),
    outcome,
    principal: z.string().meta({ description: 'Who: the id that `GET /principal` returns.' }),
    client: z.string().meta({
      description: 'The address of the client; `local` for the socket in the data directory.',
    }),
    via: z.string().nullable().meta({
      description:
        'The node of the cluster that was asked, if it has sent the request to this node to be carried out.',
    }),
    target: z.string().nullable().meta({
      description: 'The id or name of the object, as far as the request named one.',
    }),
    status,
    request_id: z.string().meta({ description: 'The `X-Request-Id` of the request.' }),
    trace_id: z
      .string()
      .nullable()
      .meta({ description: 'The trace that the request belongs to; null without one.' }),
    unlogged_count: count(
      'Attempts without a valid credential that were left out before this one.',
    ),
  })
  .meta({
    id: 'AuditEvent',
    description: 'An operation on the service that was done or attempted.',
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
        .meta({ description: 'Only of this principal.', examples: [example.principal] }),
      operation: z
        .enum([...AUDIT_OPERATIONS, ...AUDIT_KINDS])
        .optional()
        .meta({ description: 'Only this operation, or all on this kind of object.' }),
      outcome: outcome.optional().meta({ description: 'Only with this outcome.' }),
      target: z
        .string()
        .min(1)
        .optional()
        .meta({
          description: 'Only on this object: the id of a collection or key, or an alias.',
          examples: [example.target],
        }),
      since: time.meta({ description: 'Only at or after this time.' }),
      until: time.meta({ description: 'Only before this time.' }),
      limit: basics.limit,
    }),
    cursor: basics.cursor,
    list: z
      .object({
        events: z.array(event).meta({ description: 'Newest first.' }),
        ...page,
        total: count('The number of kept events that were asked for.'),
        since: z.iso
          .datetime()
          .nullable()
          .meta({
            description: `When the oldest event happened that is kept; null if there is none. The newest ${limits.auditEventsMax} are kept.`,
          }),
      })
      .meta({
        id: 'AuditList',
        description: 'A page of the audit events.',
        examples: [{ events: [example], has_more: false, total: 1, since: example.time }],
      }),
  };
}
