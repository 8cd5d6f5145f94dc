// Requests that read whole collections: export, join and projection.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { FORMAT_NAMES } from '../wire/media-types.js';
import { type BasicSchemas, upTo } from './basics.js';

const METADATA_FORMS = ['text', 'columns'] as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function scanSchemas(limits: Limits, basics: BasicSchemas) {
  const { collectionId, vectorName, filter, metric, sample, seed } = basics;
  return {
    exportQuery: z
      .strictObject({
        format: z.enum(FORMAT_NAMES).optional().meta({
          description: 'By default the format that Accept prefers, else `arrow`.',
        }),
        filter: filter.optional().meta({ description: 'Only the vectors that pass.' }),
        sample: sample.optional(),
        seed,
        include_values: z
          .boolean()
          .default(true)
          .meta({ description: 'Whether to include `values`.' }),
        include_metadata: z
          .boolean()
          .default(true)
          .meta({ description: 'Whether to include `metadata`.' }),
        metadata: z.enum(METADATA_FORMS).optional().meta({
          description:
            'With `columns`, an Arrow stream, a Parquet file or a CSV file has a nullable column for each metadata path of the exported vectors instead of `metadata`, in the order of the paths: int64 where all numbers are integers that fit, float64 for other numbers, utf8, boolean, lists of these for arrays, and JSON text as it was sent where values are of several types or nested. Values that are missing or null are null. A path that is named like another column (`id`, `values`, `metadata`, or beginning with `vectors.`, `sparse_vectors.` or `metadata.`) gets the prefix `metadata.`. By default `text`.',
        }),
      })
      .refine(isSeedOfSample, SEED_ALONE)
      .refine(({ metadata, include_metadata }) => metadata !== 'columns' || include_metadata, {
        error: 'Found metadata=columns together with include_metadata=false; expected one of them.',
        path: ['include_metadata'],
      }),
    join: z
      .strictObject({
        with: collectionId.optional().meta({
          description: 'The collection to search; by default the one in the path.',
        }),
        top_k: upTo(limits.topKMax).optional().meta({
          description: 'The maximum number of matches per vector.',
        }),
        score_threshold: basics.scoreThreshold.meta({
          description: 'Return only matches with at least this score; without `top_k` all of them.',
        }),
        using: vectorName.optional().meta({
          description:
            'The named vector of the collection in the path whose values are searched for, instead of the unnamed one. Records without it are excluded.',
        }),
        with_using: vectorName.optional().meta({
          description: 'The named vector that is searched, instead of the unnamed one.',
        }),
        filter: filter
          .optional()
          .meta({ description: 'Selects the vectors of the collection in the path.' }),
        with_filter: filter
          .optional()
          .meta({ description: 'Selects the vectors that are searched.' }),
        sample: sample.optional().meta({
          description:
            'The number of vectors to join, chosen from those that pass `filter` by hashes of their ids. Matches come from all searched vectors.',
        }),
        with_sample: sample.optional().meta({
          description:
            'The number of vectors to search, chosen from those that pass `with_filter` in the same way: in a join of a collection with itself, an equal `sample` chooses the same ones. The nearest in a sample are not the nearest of all.',
        }),
        seed: seed.meta({
          description: 'With `sample` or `with_sample`: a different seed gives a different sample.',
        }),
        exclude_self: z.boolean().optional().meta({
          description:
            'Whether to exclude matches with the id of the vector itself. By default true if a collection is joined with itself, false otherwise.',
        }),
        unordered_pairs: z.boolean().default(false).meta({
          description:
            'Whether to return each pair of vectors once instead of twice. Only in a join of a collection with itself by `score_threshold` alone, since with `top_k` a pair may be among the nearest of only one of its vectors.',
        }),
        metric: metric
          .optional()
          .meta({ description: "Used instead of the searched collection's metric." }),
        include_metadata: z
          .boolean()
          .default(false)
          .meta({ description: 'Whether to include the metadata of matches.' }),
      })
      .refine((body) => body.top_k !== undefined || body.score_threshold !== undefined, {
        error: 'Expected top_k, score_threshold or both; found neither.',
      })
      .refine(isSeedOfSample, SEED_ALONE)
      .meta({
        id: 'Join',
        description: 'Finds the nearest vectors in one collection for each vector of another.',
        examples: [{ with: 'products', top_k: 3, filter: { lang: 'en' } }],
      }),
    projection: z
      .strictObject({
        using: vectorName.optional().meta({
          description:
            'The named vector to project, instead of the unnamed one. Records without it are excluded.',
        }),
        filter: filter.optional().meta({ description: 'Only the vectors that pass.' }),
        sample: sample
          .max(limits.projectionRowsMax)
          .optional()
          .meta({
            default: Math.min(limits.projectionRowsDefault, limits.projectionRowsMax),
            description:
              'The number of vectors to choose from those that pass the filter, by hashes of their ids.',
          }),
        seed: seed.unwrap().default(0),
        dimensions: z.int().min(2).max(limits.projectionCoordinatesMax).default(2).meta({
          description: 'The number of components, which are the coordinates of each vector.',
        }),
        neighbors: z.int().min(0).max(limits.projectionNeighborsMax).default(0).meta({
          description: 'The number of nearest vectors within the sample to return for each vector.',
        }),
      })
      .meta({
        id: 'Projection',
        description: 'The principal components of a sample.',
        examples: [{ sample: 10_000, neighbors: 15, filter: { lang: 'en' } }],
      }),
    /** The formats are documented in the description of the route. */
    bytes: z.string().meta({ format: 'binary' }),
  };
}

const SEED_ALONE = {
  error: 'Expected seed together with sample; found seed alone.',
  path: ['seed'],
};

function isSeedOfSample({
  sample,
  with_sample: withSample,
  seed,
}: {
  sample?: number | undefined;
  with_sample?: number | undefined;
  seed?: number | undefined;
}): boolean {
  return seed === undefined || sample !== undefined || withSample !== undefined;
}
