// Requests for what goes through whole collections: export and join.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import type { BasicSchemas } from './basics.js';

export const EXPORT_FORMATS = ['arrow', 'ndjson', 'parquet'] as const;

export function scanSchemas(limits: Limits, basics: BasicSchemas) {
  const { collectionId, filter, metric } = basics;
  return {
    exportQuery: z.strictObject({
      format: z.enum(EXPORT_FORMATS).optional().meta({
        description: 'Absent: what Accept likes best, `arrow` where it does not tell.',
      }),
      filter: filter.optional(),
      include_values: z.boolean().default(true).meta({ description: 'Whether to write `values`.' }),
      include_metadata: z
        .boolean()
        .default(true)
        .meta({ description: 'Whether to write `metadata`.' }),
    }),
    join: z
      .strictObject({
        with: collectionId.optional().meta({
          description: 'The collection that is searched; the one in the path when absent.',
        }),
        top_k: z.int().min(1).max(limits.topKMax).optional().meta({
          description: 'How many of the nearest each row has at most.',
        }),
        score_threshold: z.number().optional().meta({
          description: 'Only matches with at least this score; without `top_k` all of them.',
        }),
        filter: filter.optional().meta({ description: 'For the rows that are joined.' }),
        with_filter: filter.optional().meta({ description: 'For the rows that are searched.' }),
        exclude_self: z.boolean().optional().meta({
          description:
            'Whether a row may not match one with its own id. True by default where a collection is joined with itself, false else.',
        }),
        metric: metric.optional().meta({ description: "In place of the searched collection's." }),
        include_metadata: z
          .boolean()
          .default(false)
          .meta({ description: 'Whether matches come with their metadata.' }),
      })
      .refine((body) => body.top_k !== undefined || body.score_threshold !== undefined, {
        error: 'Expected top_k, score_threshold or both; found neither.',
      })
      .meta({
        id: 'Join',
        examples: [{ with: 'products', top_k: 3, filter: { lang: 'en' } }],
      }),
    /** What the description of the route says more about. */
    bytes: z.string().meta({ format: 'binary' }),
  };
}
