// The members of a query that contain examples, and the one that diversifies its result.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { type Example, RECOMMEND_STRATEGIES } from '../../database/api/query-api.js';
import { readVector } from '../bodies/dense-vectors.js';
import { measureId } from '../bodies/row-rules.js';
import { describeKind } from '../bodies/value-kinds.js';
import type { LocatedViolation } from '../bodies/vector-rules.js';
import { upTo } from './basics.js';
import { parsedBy } from './rules.js';

export function exampleSchemas(limits: Limits) {
  const example = parsedBy((value: string | readonly number[]) => readExample(value, limits)).meta({
    id: 'Example',
    description: 'A stored vector by its id, or the values of a vector as an array of numbers.',
    oneOf: [{ $ref: '#/$defs/VectorId' }, { $ref: '#/$defs/Numbers' }],
    examples: ['article-17'],
  });
  const includeExamples = z.boolean().default(false).meta({
    description: 'Whether examples that are given by their ids may be in the result.',
  });
  const list = z.array(example).max(limits.examplesMax).default([]);
  const recommend = z
    .strictObject({
      positive: list.meta({ description: 'What the result should be near to.' }),
      negative: list.meta({ description: 'What the result should not be near to.' }),
      strategy: z.enum(RECOMMEND_STRATEGIES).default('average_vector').meta({
        description:
          '`average_vector`: searches with the mean of the positive examples, or with twice that mean minus the mean of the negative ones; under `cosine` of examples of length 1. `best_score`: with the highest scores p of a vector with a positive and n with a negative example, its score is s(p) if p > n, else -s(n), where s(x) = (1 + x / (1 + |x|)) / 2. `sum_scores`: the sum of its scores with the positive examples, minus that with the negative ones. The last two need no positive example, and their matches have no `distance`.',
      }),
      include_examples: includeExamples,
    })
    .meta({
      id: 'Recommend',
      description: `Finds vectors by at most ${limits.examplesMax} examples.`,
      examples: [{ positive: ['article-17', [0.12, -0.5, 0.33]], negative: ['article-4'] }],
    });
  const discover = z
    .strictObject({
      target: example.optional().meta({ description: 'What the result should be near to.' }),
      context: z
        .array(
          z.strictObject({ positive: example, negative: example }).meta({
            id: 'ExamplePair',
            description: 'Two examples; the result should be nearer to the positive one.',
            examples: [{ positive: 'article-4', negative: 'article-9' }],
          }),
        )
        .max(limits.examplesMax)
        .default([])
        .meta({
          description: 'Pairs; the result should be nearer to the positive example of each.',
        }),
      include_examples: includeExamples,
    })
    .meta({
      id: 'Discover',
      description: `Finds vectors on the positive side of pairs of examples, of which there are at most ${limits.examplesMax} with the target. With a target, a vector scores 1 for each pair whose positive is nearer, -1 for each whose negative is, plus s(its score with the target), s as for \`best_score\`. Without one, its score is the sum of d / (1 + |d|) over the pairs, where d = min(0, score with the positive - score with the negative). Matches have no \`distance\`.`,
      examples: [
        { target: 'article-17', context: [{ positive: 'article-4', negative: 'article-9' }] },
      ],
    });
  const mmr = z
    .strictObject({
      lambda: z.number().min(0).max(1).default(0.5).meta({
        description: 'From 0, which prefers what is different, to 1, which keeps the order.',
      }),
      candidates: upTo(limits.diversityCandidatesMax)
        .optional()
        .meta({
          description: `The number of nearest vectors to choose from; by default ${limits.diversityCandidatesDefault}, or \`top_k\` if that is more.`,
        }),
    })
    .meta({
      id: 'Mmr',
      description:
        'Diversifies the result by maximal marginal relevance: the nearest candidate comes first, then repeatedly the one with the highest `lambda` * its score - (1 - `lambda`) * its highest score with an earlier match, the first of equal ones. `top_k` is at most the number of candidates. Not together with `sort` or `group_by`.',
      examples: [{ lambda: 0.7, candidates: 200 }],
    });
  return { recommend, discover, mmr, multiVector: multiVectorSchema(limits) };
}

function multiVectorSchema(limits: Limits) {
  return parsedBy((value: readonly (readonly number[] | string)[]) =>
    readVectors(value, limits),
  ).meta({
    id: 'MultiVector',
    type: 'array',
    items: { $ref: '#/$defs/Values' },
    minItems: 1,
    maxItems: limits.queryVectorsMax,
    description:
      'Vectors to compare with the multi-vector `using` of records. The score is MaxSim: the sum over these vectors of the highest score (cosine or dot product) with any vector of the record.',
    examples: [
      [
        [0.12, -0.5],
        [0.33, 0.1],
      ],
    ],
  });
}

function readVectors(
  value: unknown,
  { queryVectorsMax, dimensionMax }: Limits,
): readonly Float32Array[] | LocatedViolation {
  if (!Array.isArray(value) || value.length === 0) {
    const detail = `Expected a list of 1 to ${queryVectorsMax} vectors; found ${describeKind(value)}.`;
    return { code: 'invalid_vector', detail };
  }
  if (value.length > queryVectorsMax) {
    const detail = `Expected at most ${queryVectorsMax} vectors to search with; found ${value.length}.`;
    const bound = { expected: queryVectorsMax, actual: value.length };
    return { code: 'limit_exceeded', detail, ...bound };
  }
  const vectors: Float32Array[] = [];
  for (const [index, source] of value.entries()) {
    const vector = readVector(source, dimensionMax);
    if (!(vector instanceof Float32Array)) return { ...vector, path: [index] };
    vectors.push(vector);
  }
  return vectors;
}

function readExample(value: unknown, limits: Limits): Example | Violation {
  if (typeof value === 'string') {
    const measured = measureId(value, limits.vectorIdBytesMax);
    return typeof measured === 'number' ? value : measured;
  }
  if (Array.isArray(value)) return readVector(value, limits.dimensionMax);
  const detail = `An example is an id or an array of numbers; found ${describeKind(value)}.`;
  return { code: 'invalid_request', detail };
}
