// The query and its reply.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { type BasicSchemas, page, sequence, wireFormats } from './basics.js';

/** A sort key costs a column of the page; nobody breaks ties more than a few levels deep. */
const SORT_KEYS_MAX = 8;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function querySchemas(limits: Limits, basics: BasicSchemas) {
  const { vectorId, values, metadata, filter, metric } = basics;
  const limit = z.int().min(1).max(limits.pageLimitMax).optional().meta({
    description:
      'Page size; as many as `top_k` when absent, or a usual page where that is absent as well.',
  });
  const members = {
    vector: values.optional(),
    id: vectorId.optional().meta({
      description: 'A stored vector to search with; it is left out of its own result.',
    }),
    top_k: z
      .int()
      .min(1)
      .optional()
      .meta({
        default: limits.topKDefault,
        description: `How many of the nearest to return: at most ${limits.topKMax} without \`limit\`, which makes pages of them. With \`limit\` and no \`top_k\` the pages go through the whole filtered view; with \`score_threshold\` and no \`top_k\`, through everything that has at least that score.`,
      }),
    limit,
    offset: basics.offset,
    cursor: basics.cursor,
    filter: filter.optional().meta({
      description:
        'Applied to the whole collection before scoring: the answer has min(top_k, rows that pass) matches.',
    }),
    include_metadata: z.boolean().optional().meta({ default: false }),
    include_values: z
      .union([z.boolean(), z.literal('base64')])
      .optional()
      .meta({
        default: false,
        description: '`base64`: as the base64 text of little-endian float32.',
      }),
    metric: metric.optional().meta({ description: "In place of the collection's." }),
    sort: z
      .array(
        z.strictObject({
          field: z
            .string()
            .min(1)
            .max(limits.filterPathCharactersMax)
            .meta({ description: 'A path in the metadata, `score` or `id`.' }),
          order: z.enum(['asc', 'desc']).default('asc'),
        }),
      )
      .min(1)
      .max(SORT_KEYS_MAX)
      .optional()
      .meta({
        description: `Another order of the \`top_k\` nearest, which are then at most ${limits.topKMax}.`,
      }),
    score_threshold: z
      .number()
      .optional()
      .meta({
        description: `Only matches with at least this score, compared as it is shown. Without \`top_k\` all of them: in pages of \`limit\`, ${limits.pageLimitDefault} when absent. (With \`sort\` they are among the \`top_k\` nearest in any case.)`,
      }),
    min_sequence: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Answer from a state that includes this write.' }),
    explain: z.boolean().optional().meta({ default: false }),
  };
  const description =
    'Exactly one of `vector` and `id`, or a `cursor` alone. `limit`, `offset` and `cursor` may stand in the query string instead.';
  const examples = [
    {
      vector: [0.12, -0.5, 0.33],
      top_k: 10,
      filter: { year: { $gte: 2020 } },
      include_metadata: true,
    },
  ];
  const query = z.strictObject(members).meta({ id: 'Query', description, examples });
  const reply = z
    .object({
      matches: z.array(
        z
          .object({
            id: vectorId,
            score: z
              .number()
              .meta({ description: 'Higher is better, for every metric.' })
              .register(wireFormats, { format: 'float32' }),
            distance: z
              .number()
              .register(wireFormats, { format: 'float32' })
              .optional()
              .meta({ description: 'L2; `euclidean` only.' }),
            metadata: metadata.optional(),
            values: values.optional(),
          })
          .meta({ id: 'Match' }),
      ),
      ...page,
      total: z.int().optional().meta({
        description: 'The exact size of the filtered view; on first and offset pages.',
      }),
      sequence,
      explain: z
        .object({
          engine: z.string(),
          segment_count: z.int(),
          rows_scanned: z.int(),
          rows_passed_filter: z.int(),
          candidates_rescored: z.int(),
          is_certified: z.boolean().meta({
            description: 'No row outside the answer can score above a row inside it.',
          }),
          filter_ms: z.number(),
          search_ms: z.number(),
          assemble_ms: z.number(),
        })
        .optional()
        .meta({ id: 'Explain' }),
    })
    .meta({
      id: 'QueryReply',
      examples: [
        {
          matches: [{ id: 'article-17', score: 0.9731, metadata: { year: 2024 } }],
          has_more: false,
          total: 812,
          sequence: 33,
        },
      ],
    });
  /** Of an Arrow body, whose rows may say otherwise. */
  const queryRows = z.strictObject({
    top_k: z.int().min(1).max(limits.topKMax).optional(),
    filter: filter.optional(),
    metric: metric.optional(),
    score_threshold: z.number().optional(),
    include_metadata: z.boolean().optional(),
    include_values: z.boolean().optional(),
    min_sequence: z.int().min(0).optional(),
    vector_column: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'The column of vectors, where it has no name of its own kind.' }),
  });
  const recall = z
    .strictObject({
      vectors: z.array(values).min(1).max(limits.batchQueriesMax),
      ids: z
        .array(basics.vectorIds(limits.topKMax))
        .min(1)
        .max(limits.batchQueriesMax)
        .meta({ description: 'For each vector the answer that is graded; its length is its k.' }),
      filter: filter.optional(),
      metric: metric.optional().meta({ description: "In place of the collection's." }),
      min_sequence: z.int().min(0).optional().meta({
        description: 'Answer from a state that includes this write.',
      }),
    })
    .meta({
      id: 'Recall',
      examples: [{ vectors: [[0.12, -0.5, 0.33]], ids: [['article-17', 'article-4']] }],
    });
  return {
    query,
    queryAnywhere: z.strictObject({ collection: basics.collection, ...members }).meta({
      id: 'QueryAnywhere',
      description,
      examples: [{ collection: 'articles', ...examples[0] }],
    }),
    /** Beside the body. */
    queryPage: z.strictObject({ limit, offset: basics.offset, cursor: basics.cursor }),
    queryPageAnywhere: z.strictObject({
      collection: basics.collection,
      limit,
      offset: basics.offset,
      cursor: basics.cursor,
    }),
    reply,
    batch: z.strictObject({ queries: z.array(query).min(1).max(limits.batchQueriesMax) }).meta({
      id: 'QueryBatch',
      examples: [{ queries: [{ vector: [0.12, -0.5, 0.33], top_k: 10 }, { id: 'article-17' }] }],
    }),
    queryRows,
    batchReply: z
      .object({ results: z.array(reply).meta({ description: 'In the order of the queries.' }) })
      .meta({ id: 'QueryBatchReply' }),
    recall,
    recallReply: z
      .object({
        recall: z.number().meta({ description: 'The mean over the queries.' }),
        query_count: z.int(),
        k: z.int().optional().meta({ description: 'Where all lists are equally long.' }),
        recalls: z.array(z.number()).meta({ description: 'Of each query.' }),
        sequence,
      })
      .meta({ id: 'RecallReply' }),
  };
}
