// Requests and replies of queries and of recall.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import type { AggregateSchemas } from './aggregate.js';
import { type BasicSchemas, count, page, sequence, upTo, warnings, wireFormats } from './basics.js';
import { listMembers, rankingSchemas } from './rankings.js';

const REPLY_EXAMPLE = {
  matches: [{ id: 'article-17', score: 0.9731, metadata: { year: 2024 } }],
  has_more: false,
  total: 812,
  sequence: 33,
};

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function querySchemas(limits: Limits, basics: BasicSchemas, aggregate: AggregateSchemas) {
  const { vectorId, values, namedValues, sparseVectors, using, metadata, filter, metric } = basics;
  const { single, fusion, prefetch, mmr } = rankingSchemas(limits, basics);
  const ranking = { ...single, fusion: fusion.optional() };
  const limit = upTo(limits.pageLimitMax)
    .optional()
    .meta({
      description: 'Page size. By default `top_k`, or the default page size if that is absent too.',
      examples: [100],
    });
  const members = {
    ...ranking,
    prefetch: prefetch.optional(),
    mmr: mmr.optional(),
    top_k: z
      .int()
      .min(1)
      .optional()
      .meta({
        description: `The number of nearest vectors to return, ${limits.topKDefault} if neither \`limit\`, \`score_threshold\` nor \`cursor\` says otherwise: at most ${limits.topKMax} without \`limit\`, which returns them in pages. With \`limit\` and no \`top_k\` the pages go through all vectors that pass the filter; with \`score_threshold\` and no \`top_k\`, through all that have at least that score.`,
      }),
    limit,
    offset: basics.offset,
    cursor: basics.cursor,
    filter: filter.optional().meta({
      description:
        'Applied to the whole collection before scoring: the reply has min(top_k, vectors that pass) matches.',
    }),
    include_metadata: basics.includeMetadata.optional().meta({
      default: false,
      description:
        'Whether matches contain metadata; with a list of paths, only these, within their enclosing objects.',
    }),
    include_values: z
      .union([z.boolean(), z.literal('base64')])
      .meta({
        id: 'IncludeValues',
        description:
          'Whether matches contain their vectors; `base64` for base64 of little-endian float32.',
        examples: [true],
      })
      .optional()
      .meta({
        default: false,
        description: '`base64` returns vectors as base64 of little-endian float32.',
      }),
    include_sequence: z.boolean().optional().meta({
      default: false,
      description: 'Whether matches contain `sequence`, for use in `if_sequence` of a write.',
    }),
    sort: basics.sortKeys.optional().meta({
      description: `Sorts the \`top_k\` nearest vectors, at most ${limits.topKMax}, in another order.`,
    }),
    group_by: basics.path.optional().meta({
      description: `Returns the best matches of each distinct value of a metadata path: the groups whose best match is nearest, each with its \`group_size\` nearest vectors. \`top_k\`, \`limit\` and \`offset\` then count groups. A vector without a value (missing, null, an object, an array without scalars) is in no group; an array is in the group of each of its distinct elements. With \`limit\` or \`score_threshold\` and no \`top_k\`: all groups, at most ${limits.topKMax}. Not together with \`sort\`.`,
    }),
    group_size: upTo(limits.topKMax)
      .optional()
      .meta({
        default: 1,
        description: `The number of matches per group; with 1, all matches have distinct values unless these are arrays. A page has at most ${limits.topKMax} matches.`,
      }),
    score_threshold: basics.scoreThreshold.meta({
      description: `Return only matches with at least this score, compared with scores as replies show them. Without \`top_k\` all such matches are returned, in pages of \`limit\` (default ${limits.pageLimitDefault}). With \`sort\` only the \`top_k\` nearest are considered.`,
    }),
    min_sequence: basics.minSequence,
    facets: aggregate.members.facets,
    stats: aggregate.members.stats,
    score_stats: aggregate.scoreStats,
    explain: z.boolean().optional().meta({
      default: false,
      description: 'Whether the reply contains `explain`: how the result was found.',
    }),
  };
  const description = `Exactly one of ${listMembers(ranking)}, or a \`cursor\` alone. \`limit\`, \`offset\` and \`cursor\` may be in the query string instead.`;
  const examples = [
    {
      vector: [0.12, -0.5, 0.33],
      top_k: 10,
      filter: { year: { $gte: 2020 } },
      include_metadata: true,
    },
  ];
  const query = z.strictObject(members).meta({ id: 'Query', description, examples });
  const match = z
    .object({
      id: vectorId,
      score: z
        .number()
        .meta({
          description: 'A higher score is better, for every metric.',
          format: 'float',
        })
        .register(wireFormats, { format: 'float32' }),
      distance: z
        .number()
        .meta({ format: 'float' })
        .register(wireFormats, { format: 'float32' })
        .optional()
        .meta({ description: 'The L2 distance; `euclidean` only.' }),
      group: aggregate.value.optional().meta({
        description: 'The value of its group; only with `group_by`.',
      }),
      sequence: sequence.optional().meta({
        description: 'The sequence of its last write; only with `include_sequence`.',
      }),
      metadata: metadata.optional(),
      values: values.optional(),
      vectors: namedValues.optional(),
      sparse_vectors: sparseVectors.optional(),
    })
    .meta({
      id: 'Match',
      description: 'A vector that was found.',
      examples: [{ id: 'article-17', score: 0.9731, metadata: { year: 2024 } }],
    });
  const reply = z
    .object({
      matches: z.array(match).meta({ description: 'The nearest first, or as `sort` says.' }),
      ...page,
      total: count(
        'The exact number of vectors that pass the filter and that the query ranks: with `text` or `sparse` those that match, with `fusion` those that any part ranks. Present on the first page and on pages with an `offset`.',
      ).optional(),
      sequence,
      facets: aggregate.replyMembers.facets,
      stats: aggregate.replyMembers.stats,
      score_stats: aggregate.scoreStatsReply,
      warnings,
      explain: z
        .object({
          engine: z.string().meta({
            description:
              'How the result was found: the name of an engine; `text`, `sparse` or `fusion` for queries with these; `max_sim` for multi-vectors.',
          }),
          segment_count: count('The segments of the snapshot.'),
          rows_scanned: count('The rows that were compared with the query.'),
          rows_passed_filter: count('The rows that pass the filter.'),
          candidates_rescored: count('The rows whose exact scores were computed.'),
          is_certified: z.boolean().meta({
            description:
              'Whether no vector outside the result can have a higher score than one in it.',
          }),
          embed_ms: z
            .number()
            .optional()
            .meta({ description: 'Milliseconds for turning texts into vectors.' }),
          filter_ms: z.number().meta({ description: 'Milliseconds for the filter.' }),
          search_ms: z.number().meta({ description: 'Milliseconds for the search.' }),
          assemble_ms: z.number().meta({ description: 'Milliseconds for making the reply.' }),
        })
        .meta({
          id: 'Explain',
          description: 'How the result was found.',
          examples: [
            {
              engine: 'simd',
              segment_count: 2,
              rows_scanned: 12_000,
              rows_passed_filter: 812,
              candidates_rescored: 64,
              is_certified: true,
              filter_ms: 0.4,
              search_ms: 1.2,
              assemble_ms: 0.1,
            },
          ],
        })
        .optional(),
    })
    .meta({
      id: 'QueryReply',
      description: 'A page of matches.',
      examples: [REPLY_EXAMPLE],
    });
  /** Parameters of an Arrow body, which columns of the same names override row by row. */
  const queryRows = z.strictObject({
    using,
    top_k: upTo(limits.topKMax)
      .optional()
      .meta({ description: 'The number of nearest vectors to return per query.', examples: [10] }),
    filter: filter.optional().meta({ description: 'Only vectors that pass are matches.' }),
    metric: metric.optional().meta({ description: "Used instead of the collection's metric." }),
    score_threshold: basics.scoreThreshold.meta({
      description: 'Return only matches with at least this score.',
      examples: [0.75],
    }),
    group_by: basics.path.optional().meta({
      description: 'Return the best matches of each distinct value of this metadata path.',
    }),
    group_size: upTo(limits.topKMax)
      .optional()
      .meta({ description: 'The number of matches per group.', examples: [3] }),
    include_metadata: basics.includeMetadata
      .optional()
      .meta({ description: 'Whether matches contain metadata, or the paths to include.' }),
    include_values: z
      .boolean()
      .optional()
      .meta({ description: 'Whether matches contain their vectors.' }),
    min_sequence: basics.minSequence,
    vector_column: z
      .string()
      .min(1)
      .optional()
      .meta({
        description: 'The column of vectors, if its name is not `vector`, `values` or `embedding`.',
        examples: ['emb'],
      }),
    ignore_columns: z.boolean().default(false).meta({
      description: 'Whether to ignore unknown columns instead of reporting an error.',
    }),
  });
  const recall = z
    .strictObject({
      vectors: z
        .array(values)
        .min(1)
        .max(limits.batchQueriesMax)
        .meta({ description: 'The query vectors of the other search.' }),
      ids: z
        .array(basics.vectorIds(limits.topKMax))
        .min(1)
        .max(limits.batchQueriesMax)
        .meta({ description: 'For each vector, the ids to grade; their number is k.' }),
      using,
      filter: filter.optional().meta({ description: 'Only vectors that pass count as nearest.' }),
      metric: metric.optional().meta({ description: "Used instead of the collection's metric." }),
      min_sequence: basics.minSequence,
    })
    .meta({
      id: 'Recall',
      description: 'The results of another search, to compare with the exact ones.',
      examples: [{ vectors: [[0.12, -0.5, 0.33]], ids: [['article-17', 'article-4']] }],
    });
  return {
    query,
    queryAnywhere: z.strictObject({ collection: basics.collection, ...members }).meta({
      id: 'QueryAnywhere',
      description,
      examples: [{ collection: 'articles', ...examples[0] }],
    }),
    /** The page members that may be in the query string. */
    queryPage: z.strictObject({ limit, offset: basics.offset, cursor: basics.cursor }),
    queryPageAnywhere: z.strictObject({
      collection: basics.collection,
      limit,
      offset: basics.offset,
      cursor: basics.cursor,
    }),
    match,
    reply,
    batch: z
      .strictObject({
        queries: z.array(query).min(1).max(limits.batchQueriesMax).meta({
          description: 'The queries. Those without a `cursor` use the same snapshot.',
        }),
      })
      .meta({
        id: 'QueryBatch',
        description: 'Several queries of one collection.',
        examples: [{ queries: [{ vector: [0.12, -0.5, 0.33], top_k: 10 }, { id: 'article-17' }] }],
      }),
    queryRows,
    batchReply: z
      .object({ results: z.array(reply).meta({ description: 'In the order of the queries.' }) })
      .meta({
        id: 'QueryBatchReply',
        description: 'The reply to each query.',
        examples: [{ results: [REPLY_EXAMPLE] }],
      }),
    recall,
    recallReply: z
      .object({
        recall: z.number().meta({ description: 'The mean of `recalls`.' }),
        query_count: count('The number of query vectors.'),
        k: count('The length of the lists of ids, if it is the same for all of them.').optional(),
        recalls: z.array(z.number()).meta({ description: 'The recall of each query.' }),
        sequence,
        warnings,
      })
      .meta({
        id: 'RecallReply',
        description: 'The share of the exact results that the other search found.',
        examples: [{ recall: 0.95, query_count: 2, k: 10, recalls: [0.9, 1], sequence: 33 }],
      }),
  };
}
