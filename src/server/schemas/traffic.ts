// The traffic of the last hour: intervals, collections and the slowest queries.

import { z } from 'zod';
import { WINDOW_MINUTES_MAX } from '../../platform/traffic-history.js';
import { QUERY_KINDS } from '../telemetry/query-telemetry.js';
import { count } from './basics.js';

const milliseconds = (description: string) => z.number().min(0).meta({ description });
const latency = (share: string) =>
  milliseconds(`${share} in milliseconds, within a fifth; null if there were none.`).nullable();

const interval = z
  .object({
    time: z.iso.datetime().meta({ description: 'When the interval began.' }),
    seconds: z.number().min(0).meta({
      description:
        'Its length so far: 30, and less for the interval of the start and for the current one.',
    }),
    requests: count('The number of requests that ended.'),
    errors: count('How many of them ended with a status of 400 or more.'),
    p50_ms: latency('The median duration of requests'),
    p95_ms: latency('The duration that 95 % of requests did not exceed,'),
    p99_ms: latency('The duration that 99 % of requests did not exceed,'),
    rows_written: count('The number of vectors that were inserted or updated.'),
  })
  .meta({
    id: 'TrafficInterval',
    description: 'The requests of 30 seconds.',
    examples: [
      {
        time: '2026-11-21T08:00:00.000Z',
        seconds: 30,
        requests: 240,
        errors: 1,
        p50_ms: 2.1,
        p95_ms: 6.4,
        p99_ms: 11.9,
        rows_written: 1_000,
      },
    ],
  });

const collection = z
  .object({
    id: z.string().nullable().meta({
      description:
        'The id of the collection; null for the sum of all that are not listed, because there are many or the caller may not see them.',
    }),
    queries: count('The number of queries answered. Each page and each query of a batch counts.'),
    rows_written: count('The number of vectors that were inserted or updated.'),
    p50_ms: latency('The median duration of queries'),
    p95_ms: latency('The duration that 95 % of queries did not exceed,'),
    p99_ms: latency('The duration that 99 % of queries did not exceed,'),
  })
  .meta({
    id: 'CollectionTraffic',
    description: 'The queries and writes of a collection.',
    examples: [
      {
        id: 'articles',
        queries: 230,
        rows_written: 1_000,
        p50_ms: 1.9,
        p95_ms: 5.6,
        p99_ms: 10.4,
      },
    ],
  });

const slowQuery = z
  .object({
    time: z.iso.datetime().meta({ description: 'When the query ended.' }),
    collection: z.string().meta({ description: 'The id of the collection.' }),
    request_id: z.string().meta({ description: 'The `X-Request-Id` of the request.' }),
    milliseconds: milliseconds(
      'The sum of the members that follow, without the time of the upload.',
    ),
    parse_ms: milliseconds('Reading the body.').optional(),
    embed_ms: milliseconds('Turning texts into vectors.').optional(),
    plan_ms: milliseconds('Planning the query.').optional(),
    filter_ms: milliseconds('Evaluating the filter.').optional(),
    wait_ms: milliseconds('Waiting for the engine.').optional(),
    search_ms: milliseconds('Searching.').optional(),
    assemble_ms: milliseconds('Reading ids, metadata and values.').optional(),
    reply_ms: milliseconds('Writing the reply.').optional(),
    other_ms: milliseconds('While the process was busy with something else.').optional(),
    kind: z.enum(QUERY_KINDS).meta({
      description:
        'What the query ranks by; `continued` for a page by its cursor, `batch` for several queries.',
    }),
    query_count: count('The number of queries of a batch.').optional(),
    top_k: count('The number of matches requested.').optional(),
    limit: count('The size of the page requested.').optional(),
    filter: z.string().optional().meta({
      description: 'The structure of the filter, with `f1`, `f2` … for paths and `?` for values.',
    }),
    rows_scanned: count('The number of rows searched.').optional(),
    rows_rescored: count('The number of rows whose exact score was computed.').optional(),
    code: z.string().optional().meta({ description: 'The code of the error, if it failed.' }),
  })
  .meta({
    id: 'SlowQuery',
    description: 'One of the slowest queries, without vectors, values and metadata paths.',
    examples: [
      {
        time: '2026-11-21T08:00:12.345Z',
        collection: 'articles',
        request_id: 'b1f0c2d4-5',
        milliseconds: 48.2,
        parse_ms: 0.3,
        plan_ms: 0.1,
        filter_ms: 30.5,
        wait_ms: 1.2,
        search_ms: 14.9,
        assemble_ms: 0.4,
        reply_ms: 0.2,
        other_ms: 0.6,
        kind: 'vector',
        top_k: 10,
        filter: '{f1:{$gte:?}}',
        rows_scanned: 120_000,
        rows_rescored: 40,
      },
    ],
  });

export const trafficSchemas = {
  query: z.strictObject({
    minutes: z
      .int()
      .min(1)
      .max(WINDOW_MINUTES_MAX)
      .default(WINDOW_MINUTES_MAX)
      .meta({ description: 'How far the reply goes back.', examples: [5] }),
  }),
  traffic: z
    .object({
      node: z.string().nullable().meta({
        description: 'The node of the cluster that answers, for itself; null outside a cluster.',
      }),
      intervals: z.array(interval).meta({ description: 'Oldest first; the last one is current.' }),
      collections: z
        .array(collection)
        .meta({ description: 'Collections with queries or writes, in the order of their ids.' }),
      slow_queries: z.array(slowQuery).meta({ description: 'The 20 slowest, slowest first.' }),
    })
    .meta({
      id: 'Traffic',
      description: 'What a server has done in the last minutes.',
      examples: [
        {
          node: null,
          intervals: [],
          collections: [],
          slow_queries: [],
        },
      ],
    }),
};
