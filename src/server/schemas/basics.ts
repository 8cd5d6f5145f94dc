// Schemas that several resources share. Schemas validate requests, give TypeScript its types, write replies, and
// become the OpenAPI document, in which a schema with an `id` is a component, and from it the types of the clients.
// Requests are strict objects, so that a misspelled member is an error.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import { type OperatorSubject, operatorNames } from '../../common/filter-operators.js';
import type { Limits } from '../../common/limits.js';
import { isJsonObject } from '../../common/metadata-path.js';
import {
  type JsonObject,
  METRICS,
  type NamedValues,
  type SparseVectors,
} from '../../common/types.js';
import { measureId } from '../bodies/row-rules.js';
import { readSparse, type SparseBody } from '../bodies/sparse-vectors.js';
import { describeKind } from '../bodies/value-kinds.js';
import type { LocatedViolation } from '../bodies/vector-rules.js';
import { parsedBy, refineWith } from './rules.js';

/** The format of values in replies that JSON.stringify would write differently. */
export type WireFormat =
  /** The shortest text of a number rounded to float32. */
  | 'float32'
  /** Verbatim JSON text. */
  | 'text'
  /** A Float32Array. */
  | 'vector'
  /** Float32Arrays by name. */
  | 'vectors'
  /** Sparse vectors by name. */
  | 'sparseVectors';

export const wireFormats = z.registry<{ readonly format: WireFormat }>();

/** Each sort key takes a column of the rows in memory. A few are enough to break ties. */
const SORT_KEYS_MAX = 8;

/** The content of a cursor is encrypted. */
const CURSOR_EXAMPLE = 'c2FnaXR0YQ.kH3mT9xQ7bZr2LfW';

const FLOAT32 = { type: 'number', format: 'float' } as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function basicSchemas(limits: Limits) {
  const collectionId = z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/)
    .meta({
      id: 'CollectionId',
      description: 'The identifier of a collection, unique on the server.',
      examples: ['articles'],
    });
  const vectorId = z
    .string()
    .superRefine(refineWith((id) => findIdViolation(id, limits.vectorIdBytesMax)))
    .meta({
      id: 'VectorId',
      description: `The identifier of a vector, unique in its collection, compared byte for byte: 1 to ${limits.vectorIdBytesMax} bytes of UTF-8 without control characters. (HTTP clients remove the ids \`.\` and \`..\` from URLs; send those in bodies.)`,
      minLength: 1,
      examples: ['article-17'],
    });
  const metric = z.enum(METRICS).meta({
    id: 'Metric',
    examples: ['cosine'],
    description:
      'How vectors are compared. A higher score is always better. `cosine`: in [-1, 1]. `dot`: the dot product. `euclidean`: 1 / (1 + d) with d the L2 distance. For elements of `bit` also `jaccard`: the share of common bits among those that either vector has, 0 if neither has any; and `hamming`: 1 / (1 + d) with d the number of bits that differ.',
  });
  const numbers = z
    .custom<Float32Array>((value) => value instanceof Float32Array)
    .meta({
      id: 'Numbers',
      description: 'A vector with the dimension of the collection, as an array of float32 numbers.',
      type: 'array',
      items: FLOAT32,
      minItems: 1,
      maxItems: limits.dimensionMax,
      examples: [[0.12, -0.5, 0.33]],
    })
    .register(wireFormats, { format: 'vector' });
  const values = z
    .custom<Float32Array>((value) => value instanceof Float32Array)
    .meta({
      id: 'Values',
      description: `A vector with the dimension of the collection: an array of numbers, or base64 (RFC 4648, section 4, with padding) of little-endian float32. Stored as float32. Values that are not finite as float32 are rejected, and so is a zero vector under \`cosine\`.`,
      oneOf: [{ $ref: '#/$defs/Numbers' }, { type: 'string', contentEncoding: 'base64' }],
      examples: [[0.12, -0.5, 0.33]],
    })
    .register(wireFormats, { format: 'vector' });
  const vectorName = z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/)
    .meta({
      id: 'VectorName',
      description:
        'The name of a named vector: a letter, then up to 63 letters, digits, `_` and `-`.',
      examples: ['title'],
    });
  const namedValues = z
    .custom<NamedValues>(isJsonObject, { error: expectedObject })
    .meta({
      id: 'NamedValues',
      type: 'object',
      additionalProperties: {
        anyOf: [
          { $ref: '#/$defs/Values' },
          {
            type: 'array',
            items: { $ref: '#/$defs/Values' },
            minItems: 1,
            maxItems: limits.multiVectorsMax,
          },
        ],
      },
      description:
        "Vectors by the names that the collection's `vectors` defines; a list of vectors if it has `multi`. A record may have any or none of them.",
      examples: [{ title: [0.7, -0.2] }],
    })
    .register(wireFormats, { format: 'vectors' });
  const sparseVector = parsedBy((source: SparseBody) =>
    readSparse(source, limits.sparseElementsMax),
  ).meta({
    id: 'SparseVector',
    type: 'object',
    required: ['indices', 'values'],
    additionalProperties: false,
    properties: {
      indices: {
        description: 'The indices of the elements that are not 0.',
        type: 'array',
        items: { type: 'integer', minimum: 0, maximum: 4_294_967_295 },
        minItems: 1,
        maxItems: limits.sparseElementsMax,
      },
      values: {
        description: 'The value of each index, in the same order.',
        type: 'array',
        items: FLOAT32,
        minItems: 1,
        maxItems: limits.sparseElementsMax,
      },
    },
    description:
      'A sparse vector: distinct indices in any order, and the value of each. Stored as float32, in the order of the indices; values that are 0 or not finite as float32 are rejected.',
    examples: [{ indices: [17, 4_031], values: [0.8, 1.5] }],
  });
  const sparseVectors = z
    .custom<SparseVectors>(isJsonObject, { error: expectedObject })
    .meta({
      id: 'SparseVectors',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/SparseVector' },
      description:
        "Sparse vectors by the names that the collection's `sparse_vectors` defines. A record may have any or none of them.",
      examples: [{ words: { indices: [17, 4_031], values: [0.8, 1.5] } }],
    })
    .register(wireFormats, { format: 'sparseVectors' });
  const using = vectorName.optional().meta({
    description:
      'The named vector to search instead of the unnamed one; with `sparse`, the sparse vector. Records without it are excluded.',
  });
  const metadata = z.custom<JsonObject>(isJsonObject, { error: expectedObject }).meta({
    id: 'Metadata',
    type: 'object',
    additionalProperties: true,
    description: `Any JSON object of at most ${limits.metadataBytesMax} bytes and ${limits.metadataDepthMax} levels, in which no name begins with \`$\`. Returned exactly as sent.`,
    examples: [{ title: 'On exactness', year: 2024, tags: ['search'] }],
  });
  wireFormats.add(metadata, { format: 'text' });
  const filter = z.custom<JsonObject>(isJsonObject, { error: expectedObject }).meta({
    id: 'Filter',
    type: 'object',
    additionalProperties: true,
    description: `Conditions on metadata, all of which must hold. A name is a path (\`a.b\` walks objects, and a literal name \`a.b\` wins where present), \`$id\` for the id of the vector, or \`$text\` for its indexed text (${operatorsOn('words')}: it has all of these words); a plain value means equality; an object holds operators: ${operatorsOn('values')}, for strings ${operatorsOn('strings')}, for arrays ${operatorsOn('arrays')}, for points ${operatorsOn('points')}. \`"$case": "insensitive"\` makes the comparisons of strings in the same object ignore case. \`$and\`, \`$or\` and \`$not\` nest, with \`$elem_match\`, to depth ${limits.filterDepthMax}; a filter has at most ${limits.filterNodesMax} conditions, and a list of values at most ${limits.filterValuesMax}.`,
    examples: [
      { year: { $gte: 2020 }, lang: { $in: ['en', 'de'] } },
      { $id: { $prefix: 'article-' }, published: { $date: { $gte: '2026-01-01' } } },
    ],
  });
  /** Stops at the first violation: a schema of an array would report an issue for every element. */
  const vectorIds = (countMax: number) =>
    z
      .custom<string[]>()
      .superRefine(refineWith((ids) => findIdsViolation(ids, countMax, limits.vectorIdBytesMax)))
      .meta({
        type: 'array',
        items: { $ref: '#/$defs/VectorId' },
        minItems: 1,
        maxItems: countMax,
      });
  const embed = z.string().min(1).max(limits.embedCharactersMax).meta({
    description: 'A text in place of the vector, into which the model of the collection turns it.',
  });
  const path = z
    .string()
    .max(limits.filterPathCharactersMax)
    .meta({ description: 'A path in the metadata, as in filters.', examples: ['category'] });
  const metadataChoices = [z.boolean(), z.array(path).min(1).max(limits.filterNodesMax)] as const;
  return {
    embed,
    collectionId,
    vectorId,
    vectorIds,
    metric,
    numbers,
    values,
    vectorName,
    namedValues,
    sparseVector,
    sparseVectors,
    using,
    metadata,
    filter,
    path,
    includeMetadata: z.union(metadataChoices).meta({
      id: 'IncludeMetadata',
      description: 'Whether to return metadata, or the paths to return.',
      examples: [true],
    }),
    /** For query parameters, whose lists are text, which a named schema would not allow. */
    includeMetadataParameter: z.union(metadataChoices).meta({ examples: [true] }),
    /** The collection, if the path names none. Accepts any string: one that is not an id names no collection. */
    collection: z
      .string()
      .min(1)
      .optional()
      .meta({
        description:
          'The id or an alias of the collection; by default the one that the server is configured with, if any.',
        examples: ['articles'],
      }),
    idempotencyKey: z
      .string()
      .min(1)
      .max(limits.idempotencyKeyCharactersMax)
      .optional()
      .meta({
        description: `Makes retries safe: requests with the same key and payload take effect once and get the same reply for ${limits.idempotencyMs / 3_600_000} hours. Printable characters. Must equal the header \`Idempotency-Key\` if both are sent.`,
        examples: ['7f4a1e0c-import-17'],
      }),
    limit: upTo(limits.pageLimitMax)
      .optional()
      .meta({ description: 'Page size.', default: limits.pageLimitDefault, examples: [100] }),
    /** Rounded like the scores of replies, so that a match passes with its own score. */
    scoreThreshold: z.number().overwrite(Math.fround).optional(),
    offset: z
      .int()
      .min(0)
      .optional()
      .meta({
        description:
          'The number of records to skip. Large offsets cost more, and pages shift when data changes between requests; a cursor avoids both. Not together with `cursor`.',
        examples: [200],
      }),
    sortKeys: z
      .array(
        z
          .strictObject({
            field: z.string().max(limits.filterPathCharactersMax).meta({
              description:
                'A path in the metadata, or `$id` for the id; in queries also `id`, and `score`.',
            }),
            order: z
              .enum(['asc', 'desc'])
              .default('asc')
              .meta({ description: 'Ascending or descending.' }),
          })
          .meta({
            id: 'SortKey',
            description: 'A sort key; later keys break ties of earlier ones.',
            examples: [{ field: 'year', order: 'desc' }],
          }),
      )
      .min(1)
      .max(SORT_KEYS_MAX)
      .meta({ examples: [[{ field: 'year', order: 'desc' }]] }),
    sample: z
      .int()
      .min(1)
      .meta({
        description:
          'The number of vectors to choose from those that pass the filter, by hashes of their ids: the same on every server, and nearly the same after writes.',
        examples: [10_000],
      }),
    seed: z
      .int()
      .min(0)
      .max(2 ** 32 - 1)
      .optional()
      .meta({
        default: 0,
        description: 'With `sample`: a different seed gives a different sample.',
        examples: [17],
      }),
    minSequence: z
      .int()
      .min(0)
      .optional()
      .meta({
        description: 'Answer from a snapshot that includes the write with this sequence.',
        examples: [33],
      }),
    cursor: z
      .string()
      .min(1)
      .optional()
      .meta({
        description:
          'The `next_cursor` of the previous page. Send it alone or with the same fields as for the first page. Not together with `offset`.',
        examples: [CURSOR_EXAMPLE],
      }),
  };
}

export type BasicSchemas = ReturnType<typeof basicSchemas>;

/** An integer from 1 to `max`. */
export const upTo = (max: number) => z.int().min(1).max(max);

/** Members that replies share. */
export const count = (description: string) => z.int().min(0).meta({ description });
export const status = z
  .int()
  .min(100)
  .max(599)
  .meta({ description: 'The HTTP status of the reply.' });
export const deleted = z.literal(true).meta({ description: 'Always true.' });
export const sequence = z.int().min(0).meta({
  description: 'The sequence of the last write that the reply reflects; usable as `min_sequence`.',
});
export const warnings = z
  .array(
    z
      .object({
        code: z.literal('unknown_path').meta({ description: 'The kind of the warning.' }),
        in: z.string().meta({ description: 'The member of the request that names the path.' }),
        path: z.string().meta({ description: 'The path.' }),
        detail: z.string().meta({ description: 'A sentence for people.' }),
      })
      .meta({
        id: 'Warning',
        description: 'Something in the request that is allowed, but probably a mistake.',
        examples: [
          {
            code: 'unknown_path',
            in: 'filter',
            path: 'yaer',
            detail: 'No vector has metadata at "yaer"; did you mean "year"?',
          },
        ],
      }),
  )
  .optional()
  .meta({
    description:
      'Metadata paths in the request that no vector of the collection has, or had before a write; on the first page, and absent if there are none.',
  });
export const page = {
  next_cursor: z
    .string()
    .optional()
    .meta({
      description: 'The token of the next page; absent on the last page.',
      examples: [CURSOR_EXAMPLE],
    }),
  has_more: z.boolean().meta({ description: 'Whether there is another page.' }),
};

function findIdViolation(id: unknown, bytesMax: number): Violation | null {
  const measured = measureId(id, bytesMax);
  return typeof measured === 'number' ? null : measured;
}

function findIdsViolation(
  ids: unknown,
  countMax: number,
  bytesMax: number,
): LocatedViolation | null {
  if (!Array.isArray(ids) || ids.length === 0) {
    const detail = `Expected an array of 1 to ${countMax} ids; found ${describeKind(ids)}.`;
    return { code: 'invalid_request', detail };
  }
  if (ids.length > countMax) {
    const detail = `Expected at most ${countMax} ids; found ${ids.length}.`;
    return { code: 'limit_exceeded', detail, expected: countMax, actual: ids.length };
  }
  for (const [index, id] of ids.entries()) {
    const violation = findIdViolation(id, bytesMax);
    if (violation !== null) return { ...violation, path: [index] };
  }
  return null;
}

export function expectedObject(issue: { readonly input?: unknown }): string {
  return `Expected an object; found ${describeKind(issue.input)}.`;
}

function operatorsOn(subject: OperatorSubject): string {
  return `\`${operatorNames((operator) => operator.subject === subject).join(' ')}\``;
}
