// Building blocks of the schemas: what several resources have in common. Schemas validate requests,
// give TypeScript its types and become the OpenAPI document; a schema with an `id` is a component
// there. Requests are strict objects, so that a typo does not pass in silence.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import { type JsonObject, METRICS } from '../../common/types.js';
import { describeKind } from '../ingest/describe-kind.js';
import { measureId } from '../ingest/row-rules.js';

/** How a reply writes a value that JSON.stringify would write otherwise. */
export type WireFormat =
  /** A number rounded to float32, as its shortest text. */
  | 'float32'
  /** JSON text, as it is. */
  | 'text'
  /** A Float32Array. */
  | 'vector';

export const wireFormats = z.registry<{ readonly format: WireFormat }>();

/** Built once per application, since the bounds are configurable. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of schemas that share the limits
export function basicSchemas(limits: Limits) {
  const collectionId = z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/)
    .meta({
      id: 'CollectionId',
      description: 'Identifier of a collection, unique in the service.',
      examples: ['articles'],
    });
  const vectorId = z
    .string()
    .superRefine((id, context) => {
      const measured = measureId(id, limits.vectorIdBytesMax);
      if (typeof measured === 'number') return;
      context.addIssue({ code: 'custom', message: measured.detail, params: measured });
    })
    .meta({
      id: 'VectorId',
      description: `Identifier of a vector, unique in its collection, compared byte for byte: 1 to ${limits.vectorIdBytesMax} bytes of UTF-8 without control characters. (Clients take the ids \`.\` and \`..\` out of URLs; name those in bodies.)`,
      minLength: 1,
      examples: ['article-17'],
    });
  const metric = z.enum(METRICS).meta({
    id: 'Metric',
    description:
      'How vectors are compared; a higher score is always better. `cosine`: in [-1, 1]. `dot`: the dot product as it is. `euclidean`: 1 / (1 + d) with d the L2 distance.',
  });
  const values = z
    .custom<Float32Array>((value) => value instanceof Float32Array)
    .meta({
      id: 'Values',
      description: `A vector: as many numbers as the collection has dimensions, or the base64 text (RFC 4648, section 4, with padding) of as many little-endian float32. Stored as float32; whatever is not finite as float32 is refused, and so is a zero vector under \`cosine\`.`,
      oneOf: [
        {
          type: 'array',
          items: { type: 'number' },
          minItems: 1,
          maxItems: limits.dimensionMax,
        },
        { type: 'string', contentEncoding: 'base64' },
      ],
      examples: [[0.12, -0.5, 0.33]],
    })
    .register(wireFormats, { format: 'vector' });
  const metadata = z.custom<JsonObject>(isObject, { error: wantObject }).meta({
    id: 'Metadata',
    type: 'object',
    description: `Any JSON object of at most ${limits.metadataBytesMax} bytes and ${limits.metadataDepthMax} levels, in which no name begins with \`$\`. Given back exactly as it was sent.`,
    examples: [{ title: 'On exactness', year: 2024, tags: ['search'] }],
  });
  wireFormats.add(metadata, { format: 'text' });
  const filter = z.custom<JsonObject>(isObject, { error: wantObject }).meta({
    id: 'Filter',
    type: 'object',
    description: `Conditions on metadata, all of which must hold. A name is a path (\`a.b\` walks objects, and a literal name \`a.b\` wins where present); a plain value means equality; an object holds operators: \`$eq $ne $gt $gte $lt $lte $in $nin $exists\`, and for arrays \`$contains $contains_any $contains_all\`. \`$and\`, \`$or\` and \`$not\` nest to depth ${limits.filterDepthMax}; a filter has at most ${limits.filterNodesMax} conditions, and a list of values at most ${limits.filterValuesMax}.`,
    examples: [{ year: { $gte: 2020 }, lang: { $in: ['en', 'de'] } }],
  });
  /** Stops at the first violation: a schema of an array would make an issue of every element. */
  const vectorIds = (countMax: number) =>
    z
      .custom<string[]>()
      .superRefine((ids: unknown, context) => {
        const violation = findIdsViolation(ids, countMax, limits.vectorIdBytesMax);
        if (violation === null) return;
        const { path, ...params } = violation;
        context.addIssue({ code: 'custom', path, message: params.detail, params });
      })
      .meta({
        type: 'array',
        items: { $ref: '#/$defs/VectorId' },
        minItems: 1,
        maxItems: countMax,
      });
  return {
    collectionId,
    vectorId,
    vectorIds,
    metric,
    values,
    metadata,
    filter,
    /** The collection of routes whose path names none. Any string: one that is no id names no collection. */
    collection: z
      .string()
      .min(1)
      .optional()
      .meta({
        description: 'The collection. Absent: the one that the service is configured with, if any.',
        examples: ['articles'],
      }),
    idempotencyKey: z
      .string()
      .min(1)
      .max(limits.idempotencyKeyCharactersMax)
      .optional()
      .meta({
        description: `Makes a retry safe: the same key with the same payload has its effect once, and the same reply is given again for ${limits.idempotencyMs / 3_600_000} hours. Printable characters. Equal to the header \`Idempotency-Key\` where both are sent.`,
        examples: ['7f4a1e0c-import-17'],
      }),
    limit: z
      .int()
      .min(1)
      .max(limits.pageLimitMax)
      .optional()
      .meta({ description: 'Page size.', default: limits.pageLimitDefault }),
    offset: z.int().min(0).optional().meta({
      description:
        'How many records to skip. Its cost grows with it, and pages can shift when data changes in between; a cursor has neither flaw. Never together with `cursor`.',
    }),
    cursor: z.string().min(1).optional().meta({
      description:
        'The `next_cursor` of the page before, unchanged. It may come alone, or with the fields of the first page again; other values than those are refused. Never together with `offset`.',
    }),
  };
}

export type BasicSchemas = ReturnType<typeof basicSchemas>;

/** Members that replies share. */
export const sequence = z.int().min(0).meta({
  description: 'The write of the collection that the reply reflects; pass it as `min_sequence`.',
});
export const page = {
  next_cursor: z
    .string()
    .optional()
    .meta({ description: 'Token of the next page; absent when there is none.' }),
  has_more: z.boolean().meta({ description: 'Whether a further page exists.' }),
};

function findIdsViolation(
  ids: unknown,
  countMax: number,
  bytesMax: number,
): (Violation & { path: number[] }) | null {
  if (!Array.isArray(ids) || ids.length === 0) {
    const detail = `Expected an array of 1 to ${countMax} ids; found ${describeKind(ids)}.`;
    return { code: 'invalid_request', detail, path: [] };
  }
  if (ids.length > countMax) {
    const detail = `Expected at most ${countMax} ids; found ${ids.length}.`;
    return { code: 'limit_exceeded', detail, expected: countMax, actual: ids.length, path: [] };
  }
  for (const [index, id] of ids.entries()) {
    const measured = measureId(id, bytesMax);
    if (typeof measured !== 'number') return { ...measured, path: [index] };
  }
  return null;
}

function wantObject(issue: { readonly input?: unknown }): string {
  return `Expected an object; found ${describeKind(issue.input)}.`;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
