// Requests and replies of aggregations, alone and as members of queries.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { type BasicSchemas, count, page, sequence, upTo, warnings } from './basics.js';

const HISTOGRAM_BUCKETS_DEFAULT = 10;

const FACET_EXAMPLE = {
  path: 'category',
  values: [{ value: 'news', count: 120 }],
  distinct_count: 8,
  missing_count: 3,
};
const STATS_EXAMPLE = {
  path: 'price',
  count: 809,
  missing_count: 3,
  min: 1,
  max: 99.5,
  sum: 32_360,
  mean: 40,
};
const TYPES_EXAMPLE = { null: 0, boolean: 0, number: 812, string: 0, array: 0, object: 0 };
const PATH_EXAMPLE = {
  path: 'year',
  count: 812,
  types: TYPES_EXAMPLE,
  distinct_count: 12,
  is_distinct_exact: true,
  min: 2013,
  max: 2024,
};

const value = z.union([z.string(), z.number(), z.boolean()]);
const pathReply = z.string().meta({ description: 'The path in the metadata.' });

const facetReply = z
  .object({
    path: pathReply,
    values: z
      .array(
        z
          .object({
            value: value.meta({ description: 'A value at the path.' }),
            count: count('The vectors that have this value.'),
          })
          .meta({
            id: 'FacetValue',
            description: 'A value and how often it occurs.',
            examples: [{ value: 'news', count: 120 }],
          }),
      )
      .meta({
        description:
          'The most frequent first. Equal counts: numbers before strings before booleans, each in ascending order.',
      }),
    distinct_count: count('All distinct values, returned or not.'),
    missing_count: count('The vectors without a value.'),
  })
  .meta({
    id: 'Facet',
    description: 'The values at a path.',
    examples: [FACET_EXAMPLE],
  });

const histogramReply = z
  .object({
    buckets: z
      .array(
        z
          .object({
            from: z.number().meta({ description: 'The least number that belongs to the bucket.' }),
            to: z
              .number()
              .meta({ description: 'Belongs to the next bucket, except in the last one.' }),
            count: count('The numbers in the bucket.'),
          })
          .meta({
            id: 'HistogramBucket',
            description: 'A range of numbers and how many are in it.',
            examples: [{ from: 0, to: 10, count: 17 }],
          }),
      )
      .meta({ description: 'In ascending order.' }),
    below_count: count('Numbers below `min`.'),
    above_count: count('Numbers above `max`.'),
  })
  .meta({
    id: 'Histogram',
    description: 'How numbers are distributed.',
    examples: [{ buckets: [{ from: 0, to: 10, count: 17 }], below_count: 0, above_count: 2 }],
  });

const summaryMembers = {
  min: z
    .number()
    .optional()
    .meta({ description: 'The least number. Absent without numbers, like the following members.' }),
  max: z.number().optional().meta({ description: 'The greatest number.' }),
  sum: z
    .number()
    .optional()
    .meta({ description: 'The exact sum of the float64 values, rounded once.' }),
  mean: z.number().optional().meta({ description: 'The exact mean, rounded once.' }),
  histogram: histogramReply.optional(),
};

const statsReply = z
  .object({
    path: pathReply,
    count: count('The number of numbers; each number in an array counts.'),
    missing_count: count('The vectors without a number.'),
    ...summaryMembers,
  })
  .meta({
    id: 'Stats',
    description: 'A summary of the numbers at a path.',
    examples: [STATS_EXAMPLE],
  });

const scoreStatsReply = z
  .object({
    count: count('The vectors whose scores are summarized.'),
    ...summaryMembers,
  })
  .meta({
    id: 'ScoreStats',
    description: 'A summary of scores.',
    examples: [{ count: 812, min: 0.12, max: 0.97, sum: 412.5, mean: 0.508 }],
  });

const typeCounts = z
  .object({
    null: count('Nulls.'),
    boolean: count('Booleans.'),
    number: count('Numbers.'),
    string: count('Strings.'),
    array: count('Arrays.'),
    object: count('Objects.'),
  })
  .meta({ id: 'TypeCounts', description: 'Values by type.', examples: [TYPES_EXAMPLE] });

const foundSchema = z
  .object({
    paths: z
      .array(
        z
          .object({
            path: pathReply,
            count: count('The vectors that have the path, also those with null.'),
            types: typeCounts.meta({ description: 'The vectors by the type of their value.' }),
            element_types: typeCounts
              .optional()
              .meta({ description: 'The elements of arrays by their type.' }),
            distinct_count: count('Distinct strings, numbers and booleans, also in arrays.'),
            is_distinct_exact: z.boolean().meta({
              description:
                'False for paths with more than 10 000 values in a segment: there are at least `distinct_count` values.',
            }),
            min: z.number().optional().meta({ description: 'The least number, if any.' }),
            max: z.number().optional().meta({ description: 'The greatest number, if any.' }),
          })
          .meta({
            id: 'FoundPath',
            description: 'A path of the metadata and what is there.',
            examples: [PATH_EXAMPLE],
          }),
      )
      .meta({ description: 'In the order of their characters.' }),
    has_more: page.has_more,
    next_after: z
      .string()
      .optional()
      .meta({ description: 'The `after` of the next page; absent on the last page.' }),
    count: count('The vectors that pass the filter.'),
    sequence,
    warnings,
  })
  .meta({
    id: 'FoundSchema',
    description: 'A page of the paths in the metadata.',
    examples: [{ paths: [PATH_EXAMPLE], has_more: false, count: 812, sequence: 33 }],
  });

const replyMembers = {
  facets: z.array(facetReply).optional().meta({ description: 'In the order of the request.' }),
  stats: z.array(statsReply).optional().meta({ description: 'In the order of the request.' }),
};

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function aggregateSchemas(limits: Limits, basics: BasicSchemas) {
  const { path } = basics;
  const histogram = z
    .strictObject({
      bucket_count: upTo(limits.histogramBucketsMax)
        .default(Math.min(HISTOGRAM_BUCKETS_DEFAULT, limits.histogramBucketsMax))
        .meta({ description: 'The number of buckets.' }),
      min: z.number().optional().meta({ description: 'By default the least number.' }),
      max: z.number().optional().meta({ description: 'By default the greatest number.' }),
    })
    .refine(({ min, max }) => min === undefined || max === undefined || min < max, {
      error: 'Expected min below max.',
      path: ['min'],
    })
    .meta({
      id: 'HistogramRequest',
      description:
        'Buckets of equal width from `min` to `max`; a single bucket if all numbers are equal.',
      examples: [{ bucket_count: 20, min: 0, max: 100 }],
    });
  const histogramMember = histogram
    .optional()
    .meta({ description: 'Buckets of the numbers; absent for no histogram.' });
  const members = {
    facets: z
      .array(
        z
          .strictObject({
            path,
            limit: upTo(limits.facetValuesMax)
              .default(Math.min(limits.facetValuesDefault, limits.facetValuesMax))
              .meta({ description: 'The number of values to return.' }),
            ignore_own_filter: z.boolean().default(false).meta({
              description:
                'Whether this facet ignores the conditions of the filter on its own path, so that it also contains values that are not selected. The conditions still apply to the other facets and the rest of the reply.',
            }),
          })
          .meta({
            id: 'FacetRequest',
            description: 'A path whose values are counted.',
            examples: [{ path: 'category', limit: 5 }],
          }),
      )
      .max(limits.facetsMax)
      .optional()
      .meta({
        description:
          'Counts the values of each path over all vectors that pass the filter. The count of a value is the number of vectors that the filter `{path: value}` selects: strings, numbers and booleans count, and an array counts once for each of its distinct elements.',
      }),
    stats: z
      .array(
        z.strictObject({ path, histogram: histogramMember }).meta({
          id: 'StatsRequest',
          description: 'A path whose numbers are summarized.',
          examples: [{ path: 'price', histogram: { bucket_count: 20 } }],
        }),
      )
      .max(limits.facetsMax)
      .optional()
      .meta({
        description:
          'Summarizes the numbers of each path over all vectors that pass the filter; other values are ignored.',
      }),
  };
  return {
    value,
    members,
    replyMembers,
    scoreStats: z
      .strictObject({ histogram: histogramMember })
      .meta({
        id: 'ScoreStatsRequest',
        description:
          'Summarizes the scores, as replies show them, of all vectors that pass the filter and have at least `score_threshold`. Every one of them is scored, which takes longer than a search.',
        examples: [{ histogram: { bucket_count: 20 } }],
      })
      .optional(),
    scoreStatsReply: scoreStatsReply.optional(),
    schemaQuery: z.strictObject({
      filter: basics.filter.optional().meta({ description: 'Only the vectors that pass.' }),
      limit: basics.limit.meta({ description: 'The maximum number of paths.' }),
      after: path.optional().meta({ description: 'Only paths after this one.' }),
    }),
    foundSchema,
    request: z
      .strictObject({
        filter: basics.filter.optional().meta({ description: 'Only the vectors that pass.' }),
        ...members,
        min_sequence: basics.minSequence,
      })
      .meta({
        id: 'Aggregate',
        description: 'What to count and summarize.',
        examples: [
          {
            filter: { year: { $gte: 2020 } },
            facets: [{ path: 'category', limit: 5 }],
            stats: [{ path: 'price', histogram: { bucket_count: 20 } }],
          },
        ],
      }),
    reply: z
      .object({
        count: count('The vectors that pass the filter.'),
        ...replyMembers,
        sequence,
        warnings,
      })
      .meta({
        id: 'AggregateReply',
        description: 'What was counted and summarized.',
        examples: [{ count: 812, facets: [FACET_EXAMPLE], stats: [STATS_EXAMPLE], sequence: 33 }],
      }),
  };
}

export type AggregateSchemas = ReturnType<typeof aggregateSchemas>;
