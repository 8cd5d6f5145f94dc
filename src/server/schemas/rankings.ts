// The rankings of queries, prefetches and the parts of fusions.

import { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import { FUSION_KINDS, NORMALIZATIONS } from '../../database/api/query-api.js';
import { readVector } from '../bodies/dense-vectors.js';
import { type BasicSchemas, upTo } from './basics.js';
import { exampleSchemas } from './examples.js';
import { parsedBy } from './rules.js';
import { textQuerySchema } from './text.js';

/** Larger constants give all ranks nearly the same weight. Searches read about this many rows of each part. */
const RANK_CONSTANT_MAX = 1_000;
const RANK_CONSTANT_DEFAULT = 60;

export function rankingSchemas(limits: Limits, basics: BasicSchemas) {
  const { vectorId, values, using, filter, metric } = basics;
  const { recommend, discover, mmr, multiVector } = exampleSchemas(limits);
  const withoutVector = {
    id: vectorId.optional().meta({
      description: 'A stored vector to search with. It is excluded from its own result.',
    }),
    multi_vector: multiVector.optional(),
    embed: basics.embed.optional(),
    recommend: recommend.optional(),
    discover: discover.optional(),
    text: textQuerySchema(limits).optional(),
    sparse: basics.sparseVector.optional().meta({
      description:
        'A sparse vector, compared with the sparse vector `using` by the dot product. Vectors without a common index are excluded.',
    }),
    using,
    metric: metric.optional().meta({ description: "Used instead of the collection's metric." }),
  };
  // The body parser converts only the vectors of queries themselves.
  const inner = {
    vector: innerVector(limits).optional().meta({ description: 'A vector to search with.' }),
    ...withoutVector,
  };
  const part = z
    .strictObject({
      ...inner,
      filter: filter.optional().meta({
        description: 'Vectors must pass this filter and that of the query.',
      }),
      limit: upTo(limits.topKMax).optional().meta({
        description:
          'The number of best vectors that the part ranks, by default all that pass. A limit is faster.',
      }),
      weight: z
        .number()
        .positive()
        .max(Number.MAX_SAFE_INTEGER)
        .default(1)
        .meta({ description: 'The weight relative to the other parts.' }),
    })
    .meta({
      id: 'FusionPart',
      description: `One ranking of a fusion: exactly one of ${listMembers(inner)}.`,
      examples: [{ text: { query: 'domesticated animal' }, weight: 2 }],
    });
  const fusion = z
    .strictObject({
      kind: z.enum(FUSION_KINDS).default('rrf').meta({
        description:
          '`rrf`: weight / (`rank_constant` + rank), the best having rank 1. `weighted`: weight * score.',
      }),
      rank_constant: upTo(RANK_CONSTANT_MAX)
        .default(RANK_CONSTANT_DEFAULT)
        .meta({ description: 'For `rrf`: the larger it is, the less the first ranks dominate.' }),
      normalize: z.enum(NORMALIZATIONS).default('none').meta({
        description:
          'For `weighted`: `max` divides the scores of each part by the absolute value of its best one.',
      }),
      parts: z.array(part).min(2).max(limits.fusionPartsMax).meta({ description: 'The rankings.' }),
    })
    .meta({
      id: 'Fusion',
      description:
        'Combines several rankings: the score of a vector is the sum of its contributions from each part that ranks it. Ranks are those among all vectors that pass the filters and that the part can rank. Vectors that parts name by `id` have a rank but are excluded from the result.',
      examples: [
        {
          kind: 'rrf',
          parts: [{ vector: [0.12, -0.5, 0.33] }, { text: { query: 'domesticated animal' } }],
        },
      ],
    });
  const prefetch = z
    .strictObject({
      ...inner,
      fusion: fusion.optional(),
      filter: filter.optional().meta({
        description: 'Vectors must pass this filter and that of the query.',
      }),
      limit: upTo(limits.topKMax).meta({
        description: 'The number of vectors that the query searches.',
      }),
    })
    .meta({
      id: 'Prefetch',
      description: `A first stage: the query searches only the best vectors by another ranking, exactly. It has exactly one of ${listMembers({ ...inner, fusion })}.`,
      examples: [{ vector: [0.12, -0.5, 0.33], using: 'title', limit: 100 }],
    });
  const vector = values.optional().meta({ description: 'A vector to search with.' });
  return { single: { vector, ...withoutVector }, fusion, prefetch, mmr };
}

/** A vector of numbers or base64. */
function innerVector({ dimensionMax }: Limits) {
  return parsedBy((value: readonly number[] | string) => readVector(value, dimensionMax)).meta({
    $ref: '#/$defs/Values',
  });
}

/** The names of the members to rank by. */
export function listMembers(members: object): string {
  const names = Object.keys(members)
    .filter((name) => name !== 'using' && name !== 'metric')
    .map((name) => `\`${name}\``);
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
