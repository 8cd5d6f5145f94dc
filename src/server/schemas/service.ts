// Replies about the service itself, and the shape of every error.

import { z } from 'zod';
import { ERROR_TITLES, type ErrorCode } from '../../common/errors.js';
import { DEFAULT_LIMITS } from '../../common/limits.js';
import { PROBLEM_CODES, PROBLEM_MEANINGS, type ProblemCode } from '../../common/problems.js';
import { wireName } from '../../common/wire-names.js';
import { ALL_SETTINGS } from '../../platform/settings.js';
import { count, status } from './basics.js';

const PROBLEM_EXAMPLE = {
  code: 'nats_disconnected',
  detail: 'No NATS server of SAGITTA_CLUSTER answers this node.',
  seconds: 12.5,
  blocks_writes: true,
} as const;

const codes = Object.keys(ERROR_TITLES) as ErrorCode[];

const code = z.enum(codes).meta({
  id: 'ErrorCode',
  description: `The stable identifier of the error; a code never changes its meaning.\n\n${codes
    .map((name) => `- \`${name}\`: ${ERROR_TITLES[name]}.`)
    .join('\n')}`,
  examples: ['dimension_mismatch'],
});

const ISSUE_EXAMPLE = {
  pointer: '/vectors/17/values',
  code: 'dimension_mismatch',
  detail: "The vector has 2 elements; the collection's dimension is 3.",
  expected: 3,
  actual: 2,
};

const problem = z
  .object({
    type: z.string().meta({ description: '`urn:sagitta:error:` followed by the code.' }),
    title: z.string().meta({ description: 'The meaning of the code.' }),
    status,
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
        z
          .object({
            pointer: z.string().meta({
              description: 'A JSON pointer into the body, or `?name` for a query parameter.',
            }),
            code,
            detail: z.string().meta({ description: 'What was found and what was expected.' }),
            expected: z
              .union([z.string(), z.number()])
              .optional()
              .meta({ description: 'The limit, the type or the values that were expected.' }),
            actual: z
              .union([z.string(), z.number()])
              .optional()
              .meta({ description: 'What was found.' }),
          })
          .meta({
            id: 'ProblemIssue',
            description: 'A problem in a request.',
            examples: [ISSUE_EXAMPLE],
          }),
      )
      .optional()
      .meta({ description: 'The first 100 issues.' }),
    committed_count: count(
      'For streamed writes: the number of rows that are durable. Later rows were not written.',
    ).optional(),
    sequence: count(
      'For streamed writes: the sequence of the last durable write, if any.',
    ).optional(),
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
        errors: [ISSUE_EXAMPLE],
      },
    ],
  });

const problemCode = z.enum(PROBLEM_CODES as [ProblemCode, ...ProblemCode[]]).meta({
  id: 'ProblemCode',
  examples: ['nats_disconnected'],
  description: PROBLEM_CODES.map((name) => `\`${name}\`: ${PROBLEM_MEANINGS[name]}`).join('; '),
});

/** What is wrong with a service, in replies about its state. */
export const serviceProblem = z
  .object({
    code: problemCode,
    detail: z.string().meta({ description: 'What was found, and what to do.' }),
    seconds: z.number().min(0).meta({ description: 'How long it has lasted.' }),
    blocks_writes: z.boolean().meta({ description: 'Whether writes fail or wait because of it.' }),
  })
  .meta({
    id: 'ServiceProblem',
    description: 'What is wrong with a service at the moment.',
    examples: [PROBLEM_EXAMPLE],
  });

const bounds = Object.keys(DEFAULT_LIMITS).map((name) => {
  const { unit, help } = ALL_SETTINGS.get(name)!;
  return [wireName(name), count(`${help} In ${unit}.`)] as const;
});

const LIMITS_EXAMPLE = Object.fromEntries(
  Object.entries(DEFAULT_LIMITS).map(([name, value]) => [wireName(name), value]),
);

const link = (what: string) => z.string().meta({ description: what });

export const serviceSchemas = {
  problem,
  info: z
    .object({
      name: z.literal('Sagitta').meta({ description: 'The name of the program.' }),
      version: z.string().meta({ description: 'The version of the program.' }),
      api: z.literal('v1').meta({ description: 'The prefix of versioned paths.' }),
      console: z
        .string()
        .nullable()
        .meta({ description: 'The web console; null if this server has none.' }),
      docs: link('The API reference.'),
      openapi: link('The OpenAPI document.'),
      ready: link('Whether requests will be answered.'),
    })
    .meta({
      id: 'ServiceInfo',
      description: 'Describes the service. Links are relative to the URL of this document.',
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
  limits: z.object(Object.fromEntries(bounds)).meta({
    id: 'Limits',
    description: 'The limits of this server.',
    examples: [LIMITS_EXAMPLE],
  }),
  live: z.object({ status: z.literal('live').meta({ description: 'Always `live`.' }) }).meta({
    id: 'Liveness',
    description: 'The process is running.',
    examples: [{ status: 'live' }],
  }),
  ready: z
    .object({
      status: z.enum(['starting', 'ready', 'stopping', 'not_writable']).meta({
        description:
          '`starting`: requests are not answered yet; `stopping`: they are no longer answered; `not_writable`, only with `for=write`: reads are answered, and writes fail or wait.',
      }),
      reason: z.string().optional().meta({ description: 'Why it is not ready.' }),
      collections_loading: z.number().int().min(0).meta({
        description:
          'The number of collections that have not been loaded since the start. A request for one of them loads it next and waits for it.',
      }),
      collections_not_ready: z
        .array(
          z
            .object({
              id: z.string().meta({ description: 'The id of the collection.' }),
              status: z.enum(['loading', 'failed']).meta({
                description:
                  '`loading`: a request for it waits; `failed`: its data is damaged, and it stays unavailable.',
              }),
              reason: z.string().meta({ description: 'Why it is not ready.' }),
            })
            .meta({
              id: 'CollectionNotReady',
              description: 'A collection whose requests wait or are refused.',
              examples: [
                {
                  id: 'articles',
                  status: 'loading',
                  reason: 'It is waiting to be loaded, or its log is being read.',
                },
              ],
            }),
        )
        .meta({ description: 'The first 100.' }),
      problems: z.array(serviceProblem).meta({
        description:
          'What is wrong at the moment, for clients that may read metrics; empty for others.',
      }),
    })
    .meta({
      id: 'Readiness',
      description: 'Whether requests are answered.',
      examples: [
        { status: 'ready', collections_loading: 0, collections_not_ready: [], problems: [] },
      ],
    }),
  openApi: z.looseObject({}).meta({
    id: 'OpenApiDocument',
    description: 'This document.',
    examples: [{ openapi: '3.1.0' }],
  }),
};
