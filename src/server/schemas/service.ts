// Replies about the service itself, and the shape of every error.

import { z } from 'zod';
import { ERROR_TITLES, type ErrorCode } from '../../common/errors.js';
import { DEFAULT_LIMITS, type Limits } from '../../common/limits.js';

const codes = Object.keys(ERROR_TITLES) as ErrorCode[];

const code = z.enum(codes).meta({
  id: 'ErrorCode',
  description: `The stable identifier of the error; a code never changes its meaning.\n\n${codes
    .map((name) => `- \`${name}\`: ${ERROR_TITLES[name]}.`)
    .join('\n')}`,
});

const problem = z
  .object({
    type: z.string().meta({ description: '`urn:sagitta:error:` followed by the code.' }),
    title: z.string().meta({ description: 'The meaning of the code.' }),
    status: z.int().meta({ description: 'The status of the reply.' }),
    detail: z.string().meta({ description: 'What was found, what was expected and where.' }),
    instance: z.string().meta({ description: 'The path of the request.' }),
    code,
    request_id: z
      .string()
      .meta({ description: 'The value of `X-Request-Id`, which is also in the server log.' }),
    retryable: z.boolean().meta({
      description:
        'Whether the same request can succeed later. A write that is not idempotent by itself needs an idempotency key for that.',
    }),
    errors: z
      .array(
        z.object({
          pointer: z.string().meta({
            description: 'A JSON pointer into the body, or `?name` for a query parameter.',
          }),
          code,
          detail: z.string(),
          expected: z.union([z.string(), z.number()]).optional(),
          actual: z.union([z.string(), z.number()]).optional(),
        }),
      )
      .optional()
      .meta({ description: 'The first 100 issues.' }),
    committed_count: z.int().optional().meta({
      description:
        'For streamed writes: the number of rows that are durable. Later rows were not written.',
    }),
    sequence: z.int().optional().meta({
      description: 'For streamed writes: the sequence of the last durable write, if any.',
    }),
  })
  .meta({
    id: 'Problem',
    description: 'Any error, as in RFC 9457.',
    examples: [
      {
        type: 'urn:sagitta:error:dimension_mismatch',
        title: ERROR_TITLES.dimension_mismatch,
        status: 400,
        detail: "/vectors/17/values: The vector has 2 elements; the collection's dimension is 3.",
        instance: '/v1/collections/articles/vectors',
        code: 'dimension_mismatch',
        request_id: 'b1f0c2d4-5',
        retryable: false,
        errors: [
          {
            pointer: '/vectors/17/values',
            code: 'dimension_mismatch',
            detail: "The vector has 2 elements; the collection's dimension is 3.",
            expected: 3,
            actual: 2,
          },
        ],
      },
    ],
  });

const bounds = Object.keys(DEFAULT_LIMITS).map((name) => [toSnakeCase(name), z.int()] as const);

const link = (what: string) => z.string().meta({ description: what });

export const serviceSchemas = {
  problem,
  info: z
    .object({
      name: z.literal('Sagitta'),
      version: z.string().meta({ description: 'The version of the program.' }),
      api: z.literal('v1').meta({ description: 'The prefix of versioned paths.' }),
      console: z
        .string()
        .nullable()
        .meta({ description: 'The web page for people; null if this server has none.' }),
      docs: link('The API reference.'),
      openapi: link('The OpenAPI document.'),
      ready: link('Whether requests will be answered.'),
    })
    .meta({
      id: 'ServiceInfo',
      description: 'What the service is. Links are relative to the URL of this document.',
      examples: [
        {
          name: 'Sagitta',
          version: '0.1.0',
          api: 'v1',
          console: 'console/',
          docs: 'docs/',
          openapi: 'openapi.json',
          ready: 'readyz',
        },
      ],
    }),
  limits: z
    .object(Object.fromEntries(bounds))
    .meta({ id: 'Limits', description: 'The limits of this server.' }),
  live: z.object({ status: z.literal('live') }).meta({ id: 'Liveness' }),
  ready: z
    .object({
      status: z.enum(['starting', 'ready', 'stopping']),
      reason: z.string().optional().meta({ description: 'Why it is not ready.' }),
      collections_not_ready: z
        .array(
          z.object({ id: z.string(), status: z.enum(['loading', 'failed']), reason: z.string() }),
        )
        .meta({ description: 'The first 100.' }),
    })
    .meta({
      id: 'Readiness',
      examples: [{ status: 'ready', collections_not_ready: [] }],
    }),
};

/** The limits as the reply names them. */
export function limitsReply(limits: Limits): Record<string, number> {
  return Object.fromEntries(
    Object.entries(limits).map(([name, value]) => [toSnakeCase(name), value]),
  );
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
