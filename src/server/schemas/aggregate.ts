// Requests and replies of aggregations, alone and as members of queries.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { type BasicSchemas, page, sequence } from './basics.js';

const HISTOGRAM_BUCKETS_DEFAULT = 10;

const count = z.int().min(0);

const value = z.union([z.string(), z.number(), z.boolean()]);

const facetReply = z
  .object({
    path: z.string(),
    values: z
      .array(
        z.object({
          value,
          count: count.meta({ description: 'The vectors that have this value.' }),
        }),
      )
      .meta({
        description:
          'The most frequent first. Equal counts: numbers before strings before booleans, each in ascending order.',
      }),
    distinct_count: count.meta({ description: 'All distinct values, returned or not.' }),
    missing_count: count.meta({ description: 'The vectors without a value.' }),
  })
  .meta({ id: 'Facet' });

const histogramReply = z
  .object({
    buckets: z.array(
      z.object({
        from: z.number(),
        to: z.number().meta({ description: 'Belongs to the next bucket, except in the last one.' }),
        count,
      }),
    ),
    below_count: count.meta({ description: 'Numbers below `min`.' }),
    above_count: count.meta({ description: 'Numbers above `max`.' }),
  })
  .meta({ id: 'Histogram' });

const summaryMembers = {
  min: z.number().optional().meta({ description: 'Absent, as what follows, without numbers.' }),
  max: z.number().optional(),
  sum: z
    .number()
    .optional()
    .meta({ description: 'The exact sum of the float64 values, rounded once.' }),
  mean: z.number().optional().meta({ description: 'The exact mean, rounded once.' }),
  histogram: histogramReply.optional(),
};

const statsReply = z
  .object({
    path: z.string(),
    count: count.meta({ description: 'The numbers: of an array, each number in it.' }),
    missing_count: count.meta({ description: 'The vectors without a number.' }),
    ...summaryMembers,
  })
  .meta({ id: 'Stats' });

const scoreStatsReply = z
  .object({
    count: count.meta({ description: 'The vectors whose scores are summarized.' }),
    ...summaryMembers,
  })
  .meta({ id: 'ScoreStats' });

const typeCounts = z
  .object({
    null: count,
    boolean: count,
    number: count,
    string: count,
    array: count,
    object: count,
  })
  .meta({ id: 'TypeCounts' });

const foundSchema = z
  .object({
    paths: z
      .array(
        z
          .object({
            path: z.string(),
            count: count.meta({ description: 'The vectors that have the path, also with null.' }),
            types: typeCounts.meta({ description: 'The vectors by the type of their value.' }),
            element_types: typeCounts
              .optional()
              .meta({ description: 'The elements of arrays by their type.' }),
            distinct_count: count.meta({
              description: 'Distinct strings, numbers and booleans, also in arrays.',
            }),
            is_distinct_exact: z.boolean().meta({
              description:
                'False for paths with more than 10 000 values in a segment: there are at least `distinct_count` values.',
            }),
            min: z.number().optional().meta({ description: 'The least number, if any.' }),
            max: z.number().optional(),
          })
          .meta({ id: 'FoundPath' }),
      )
      .meta({ description: 'In the order of their characters.' }),
    has_more: page.has_more,
    next_after: z
      .string()
      .optional()
      .meta({ description: 'The `after` of the next page; absent on the last page.' }),
    count: count.meta({ description: 'The vectors that pass the filter.' }),
    sequence,
  })
  .meta({ id: 'FoundSchema' });

const replyMembers = {
  facets: z.array(facetReply).optional().meta({ description: 'In the order of the request.' }),
  stats: z.array(statsReply).optional().meta({ description: 'In the order of the request.' }),
};

export function aggregateSchemas(limits: Limits, basics: BasicSchemas) {
  const { path } = basics;
  const histogram = z
    .strictObject({
      bucket_count: z
        .int()
        .min(1)
        .max(limits.histogramBucketsMax)
        .default(Math.min(HISTOGRAM_BUCKETS_DEFAULT, limits.histogramBucketsMax)),
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
        'Buckets of equal width from `min` to `max`. A single one when all numbers are equal.',
    });
  const members = {
    facets: z
      .array(
        z.strictObject({
          path,
          limit: z
            .int()
            .min(1)
            .max(limits.facetValuesMax)
            .default(Math.min(limits.facetValuesDefault, limits.facetValuesMax))
            .meta({ description: 'The number of values to return.' }),
        }),
      )
      .max(limits.facetsMax)
      .optional()
      .meta({
        description:
          'Counts the values of each path over all vectors that pass the filter. The count of a value is the number of vectors that the filter `{path: value}` selects: strings, numbers and booleans count, and an array counts once for each of its distinct elements.',
      }),
    stats: z
      .array(z.strictObject({ path, histogram: histogram.optional() }))
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
    scoreStats: z.strictObject({ histogram: histogram.optional() }).optional().meta({
      description:
        'Summarizes the scores, as replies show them, of all vectors that pass the filter and have at least `score_threshold`. Every one of them is scored, which takes longer than a search.',
    }),
    scoreStatsReply: scoreStatsReply.optional(),
    schemaQuery: z.strictObject({
      filter: basics.filter.optional(),
      limit: basics.limit.meta({ description: 'The maximum number of paths.' }),
      after: path.optional().meta({ description: 'Only paths after this one.' }),
    }),
    foundSchema,
    request: z
      .strictObject({
        filter: basics.filter.optional(),
        ...members,
        min_sequence: basics.minSequence,
      })
      .meta({
        id: 'Aggregate',
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
        count: count.meta({ description: 'The vectors that pass the filter.' }),
        ...replyMembers,
        sequence,
      })
      .meta({ id: 'AggregateReply' }),
  };
}

export type AggregateSchemas = ReturnType<typeof aggregateSchemas>;
