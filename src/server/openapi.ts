// Generates the OpenAPI 3.1 document from the routes and schemas that serve requests. Named schemas become
// components. Every operation lists its statuses and the error codes of each.

import type { z } from 'zod';
import { ERROR_TITLES, type ErrorCode, SagittaError } from '../common/errors.js';
import { packageVersion } from '../common/package-files.js';
import { rateKindOf } from './limits/rate-limit.js';
import { mayNeedRows, ownerOf, type Route } from './requests/route.js';
import type { Schemas } from './schemas/all.js';
import { convertSchemas, type JsonSchema } from './schemas/json-schemas.js';
import { JSON_TYPE } from './wire/media-types.js';
import { BODY_LAYOUT, problemReply, STATUS_OF_CODE } from './wire/problem.js';

type Described = Record<string, unknown>;

const TAGS = {
  Collections: 'Collections of vectors with the same dimension and metric.',
  Vectors: 'Embeddings with metadata.',
  Query: 'Exact nearest-neighbour search, filtered by metadata.',
  Keys: 'API keys and their scopes.',
  Backups: 'Online backups of the whole service.',
  Service: 'Limits, health, metrics and this document.',
} as const satisfies Record<Route['tag'], string>;

/** Error codes of every route. `limit_exceeded` is for headers that are too long, `deadline_exceeded` for late ones. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_request',
  'unknown_parameter',
  'limit_exceeded',
  'deadline_exceeded',
  'internal',
];
const ACCESS_ERRORS: readonly ErrorCode[] = [
  'credentials_missing',
  'credentials_invalid',
  'credentials_unavailable',
  'insufficient_scope',
  'origin_not_allowed',
];
const LIMIT_ERRORS: readonly ErrorCode[] = ['rate_limited'];
const NEGOTIATION_ERRORS: readonly ErrorCode[] = ['not_acceptable'];
const STREAM_ERRORS: readonly ErrorCode[] = ['invalid_arrow', 'deadline_exceeded', 'overloaded'];
const BODY_ERRORS: readonly ErrorCode[] = [
  'invalid_json',
  'unsupported_media_type',
  'payload_too_large',
];
const DATA_ERRORS: readonly ErrorCode[] = [
  'overloaded',
  'starting',
  'stopping',
  'deadline_exceeded',
];
/** In a cluster, for routes that the owner of a collection or of the catalogue carries out. */
const LEADER_ERRORS: readonly ErrorCode[] = ['no_leader', 'outcome_unknown'];
/** In a cluster, for routes that need rows of a collection. */
const HOLDER_ERRORS: readonly ErrorCode[] = ['no_holder'];
const KEY_ERRORS: readonly ErrorCode[] = [
  'idempotency_key_mismatch',
  'idempotency_in_flight',
  'idempotency_key_reused',
];

const OPERATIONAL_SERVERS = [{ url: '/', description: 'Unversioned only.' }];

export function describeApi(routes: readonly Route[], schemas: Schemas): Described {
  const components = describeComponents(routes, schemas);
  const paths: Record<string, Described> = {};
  for (const route of routes) {
    paths[route.path] ??= describePath(route, schemas, components);
    paths[route.path][route.method.toLowerCase()] = describeOperation(route, components);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sagitta',
      version: packageVersion(),
      description:
        'A vector database for exact nearest-neighbour search. Success is always 200, with a JSON body or, where the route says so, a stream; every error is a problem document (RFC 9457) with a `code`. Unknown members and parameters are errors. An unknown path is 404 `route_not_found`; an unsupported method is 405 `method_not_allowed` with the header `Allow`.',
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/v1', description: 'Versioned paths.' },
      { url: '/', description: 'The same paths without a version.' },
    ],
    security: [{ bearer: [] }, { certificate: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas,
      examples: problemExamples(routes),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API key (`sk_…`) or an OAuth 2.0 access token (JWT). Not required if no credentials are configured.',
  },
  certificate: {
    type: 'mutualTLS',
    description: 'A client certificate that is assigned to a principal.',
  },
} as const;

const header = (type: 'string' | 'integer', description: string) => ({
  description,
  schema: type === 'integer' ? { type, format: 'int64' } : { type },
});

const HEADERS = {
  RequestId: header(
    'string',
    'The `X-Request-Id` of the request if it is valid, else a generated one.',
  ),
  ETag: header(
    'string',
    'The entity tag of this representation, for `If-None-Match`, and for `If-Match` of a PATCH.',
  ),
  Location: header('string', 'The path of the new collection.'),
  PageLocation: header('string', 'The location of the page, relative to the path of the request.'),
  RetryAfter: header('integer', 'Seconds after which to retry.'),
  RateLimitPolicy: header(
    'string',
    'The rate limit of the principal: `"read";q=40000;w=2` allows a burst of 40000 reads, which is replenished within 2 seconds (draft-ietf-httpapi-ratelimit-headers). Absent without a limit.',
  ),
  RateLimit: header(
    'string',
    'What remains of the rate limit: with `"read";r=39999;t=1`, 39999 reads now, and the whole burst in 1 second.',
  ),
  WwwAuthenticate: header('string', 'The required credential (RFC 6750).'),
  ServerTiming: header(
    'string',
    'Durations in milliseconds: filter, wait (for the engine), search, assemble, and total since the headers of the request.',
  ),
  SagittaSequence: header(
    'integer',
    'The sequence of the last write that the reply reflects; pass it as `min_sequence`.',
  ),
  SagittaSession: header(
    'string',
    'In a cluster: how much of it the client has seen, to be sent with the next requests.',
  ),
  SagittaWarnings: header(
    'string',
    'A JSON array of warnings, for streamed replies; absent if there are none. They have the form of the member `warnings` of other replies.',
  ),
  ContentDisposition: header('string', 'A file name made from the id of the collection.'),
  IdempotentReplayed: header('string', '`true` if this is the stored reply of an earlier request.'),
} as const;

const headerRef = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` });

interface Components {
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /** The schema as it appears in the document: a reference if it is named. */
  describe(schema: z.ZodType): JsonSchema;
}

function describeComponents(routes: readonly Route[], schemas: Schemas): Components {
  const all = new Map<z.ZodType, string>([[schemas.service.problem, 'problem']]);
  const add = (schema: z.ZodType | null) => {
    if (schema !== null && !all.has(schema)) all.set(schema, `schema${all.size}`);
  };
  for (const route of routes) {
    add(route.body);
    add(route.reply);
    for (const parameter of Object.values(route.query?.shape ?? {})) add(parameter as z.ZodType);
    for (const name of parametersOf(route.path)) add(pathParameter(route, name, schemas).schema);
  }
  const shape = Object.fromEntries([...all].map(([schema, key]) => [key, schema]));
  const { properties, components } = convertSchemas(shape);
  return { schemas: components, describe: (schema) => properties[all.get(schema)!]! };
}

const parametersOf = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);

/** Describes a parameter of a path. `{id}` is the id of a collection, except in `/vectors/{id}`. */
function pathParameter(route: Route, name: string, { aliases, basics, keys }: Schemas) {
  if (name === 'key_id') return { schema: keys.id, meaning: 'The id of the key.' };
  if (name === 'name') return { schema: aliases.name, meaning: 'The name of the alias.' };
  if (name === 'vector_id' || route.path === '/vectors/{id}') {
    return { schema: basics.vectorId, meaning: 'The id of the vector.' };
  }
  return { schema: basics.collectionId, meaning: 'The collection: its id or an alias.' };
}

function describePath(route: Route, schemas: Schemas, components: Components): Described {
  const parameters = parametersOf(route.path).map((name) => {
    const { schema, meaning } = pathParameter(route, name, schemas);
    const described = components.describe(schema);
    return {
      name,
      in: 'path',
      required: true,
      description: `${meaning} Percent-encoded as URLs require.`,
      schema: described,
      ...exampleOf(described, components),
    };
  });
  return {
    ...(route.isOperational === true ? { servers: OPERATIONAL_SERVERS } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
  };
}

function describeOperation(route: Route, components: Components): Described {
  const parameters = [...describeQuery(route, components), ...describeHeaders(route)];
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...describeAccess(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: describeBody(route.body, route, components) }),
    responses: describeReplies(route, components),
  };
}

/** The credential that the route requires, in words and for code generators. */
function describeAccess({ access, description }: Route): Described {
  if (access === 'public') {
    return { ...(description === undefined ? {} : { description }), security: [] };
  }
  const need =
    access === 'anyone' ? 'Requires any credential.' : `Requires the scope \`${access.scope}\`.`;
  return { description: description === undefined ? need : `${description} ${need}` };
}

const COMPONENT = '#/components/schemas/';
const FILTER = `${COMPONENT}Filter`;

function describeQuery(route: Route, components: Components): Described[] {
  return Object.entries(route.query?.shape ?? {}).map(([name, schema]) => {
    const described = components.describe(schema as z.ZodType);
    const { description, examples: _, ...rest } = described;
    const { example } = exampleOf(described, components);
    const isJson = described.$ref === FILTER || described.type === 'array';
    return {
      name,
      in: 'query',
      description: `${description}${isJson ? ' As JSON text.' : rest.anyOf === undefined ? '' : ' A list is JSON text.'}`,
      schema: isJson ? jsonText(rest) : withJsonText(rest),
      ...(example === undefined ? {} : { example: isJson ? JSON.stringify(example) : example }),
    };
  });
}

/**
 * Declared as text, since client generators do not support parameters with a content type. Without
 * `contentMediaType`, for which Swagger UI asks for a file.
 */
function jsonText(schema: JsonSchema): JsonSchema {
  return { type: 'string', 'x-json-schema': schema };
}

/** Declares the arrays among the alternatives as text. */
function withJsonText({ anyOf, ...rest }: JsonSchema): JsonSchema {
  if (anyOf === undefined) return rest;
  const kinds = anyOf.map((kind) => (kind.type === 'array' ? jsonText(kind) : kind));
  return { ...rest, anyOf: kinds };
}

/** The first example of the schema or of the component that it refers to. */
function exampleOf(schema: JsonSchema, components: Components): { readonly example?: unknown } {
  const name = schema.$ref?.slice(COMPONENT.length);
  const { examples = name === undefined ? [] : components.schemas[name]!.examples } = schema;
  return examples === undefined || examples.length === 0 ? {} : { example: examples[0] };
}

function describeHeaders(route: Route): Described[] {
  const headers: Described[] = [];
  const add = (name: string, example: string, description: string) =>
    headers.push({ name, in: 'header', description, schema: { type: 'string' }, example });
  if (route.takesIdempotencyKey === true) {
    add(
      'Idempotency-Key',
      '7f4a1e0c-import-17',
      'Alternative to `idempotency_key` in the body; if both are sent, they must be equal.',
    );
  }
  if (route.takesIfMatch === true) {
    add('If-Match', ETAG, 'Write only if the current ETag of the vector is one of these.');
  }
  if (rateKindOf(route.access) === 'read') {
    add(
      'Sagitta-Consistency',
      'strong',
      '`strong`: the reply reflects every write that any node of the cluster acknowledged before the request. By default it reflects what the node that receives the request has applied.',
    );
    add(
      'Sagitta-Session',
      'catalogue:18,1d6b0f0e-6e0c-4a50-9c35-9f1e4b7a2c11:42',
      'What the client has seen: items of this header in earlier replies, the latest of each name. The reply reflects at least that, whichever node of the cluster sends it.',
    );
  }
  if (route.method === 'GET' && route.sendsETag === true) {
    add('If-None-Match', ETAG, 'Reply with 304 if the current ETag is one of these.');
  }
  return headers;
}

const ETAG = '"kH3mT9xQ7bZr2LfWc2FnaX"';

function describeBody(body: z.ZodType, route: Route, components: Components): Described {
  const schema = components.describe(body);
  const media = { schema, ...exampleOf(schema, components) };
  const content: Described = { [JSON_TYPE]: media };
  if (route.method === 'PATCH') content['application/merge-patch+json'] = media;
  for (const type of route.streamTypes ?? []) content[type] = STREAM;
  return { required: true, content };
}

/** The description of the route explains the content. */
const STREAM = { schema: { type: 'string', format: 'binary' } } as const;

/** JSON has a schema, and so has the only content type of a route. */
function describeContent(route: Route, components: Components): Described {
  const { replyTypes = [JSON_TYPE] } = route;
  const schema = components.describe(route.reply);
  const media = { schema, ...exampleOf(schema, components) };
  const hasSchema = (type: string) => type === JSON_TYPE || replyTypes.length === 1;
  return Object.fromEntries(replyTypes.map((type) => [type, hasSchema(type) ? media : STREAM]));
}

function describeReplies(route: Route, components: Components): Described {
  const content = describeContent(route, components);
  const replies: Record<string, Described> = {
    200: {
      description: 'Success.',
      headers: {
        'X-Request-Id': headerRef('RequestId'),
        ...rateHeaders(route),
        ...sentHeaders(route),
      },
      content,
    },
  };
  if (route.method === 'GET' && route.sendsETag === true) {
    replies['304'] = {
      description: 'Not modified.',
      headers: { ETag: headerRef('ETag'), ...rateHeaders(route) },
    };
  }
  if (route.otherReply !== undefined) {
    const { status, description } = route.otherReply;
    replies[status] = { description, content };
  }
  if (route.redirects !== undefined) {
    replies['307'] = {
      description: route.redirects,
      headers: { Location: headerRef('PageLocation') },
    };
  }
  for (const [status, codes] of groupByStatus(errorsOf(route))) {
    replies[status] = describeProblem(status, codes, status === 429 ? rateHeaders(route) : {});
  }
  return replies;
}

/** Headers of a 200 reply by the member of the route that declares them. */
const SENT_HEADERS = {
  sendsETag: ['ETag', 'ETag'],
  sendsLocation: ['Location', 'Location'],
  sendsServerTiming: ['Server-Timing', 'ServerTiming'],
  sendsSequence: ['Sagitta-Sequence', 'SagittaSequence'],
  sendsWarnings: ['Sagitta-Warnings', 'SagittaWarnings'],
  sendsFile: ['Content-Disposition', 'ContentDisposition'],
  takesIdempotencyKey: ['Idempotent-Replayed', 'IdempotentReplayed'],
} as const;

function sentHeaders(route: Route): Described {
  const members = Object.keys(SENT_HEADERS) as (keyof typeof SENT_HEADERS)[];
  const sent = members.filter((member) => route[member] === true);
  return {
    ...Object.fromEntries(
      sent.map((member) => [SENT_HEADERS[member][0], headerRef(SENT_HEADERS[member][1])]),
    ),
    ...(rateKindOf(route.access) === null
      ? {}
      : { 'Sagitta-Session': headerRef('SagittaSession') }),
  };
}

/** Errors of routes without a body, which refuse one, sometimes by its headers alone. Bodies of GET are ignored. */
function unwantedBodyErrors({ method }: Route): readonly ErrorCode[] {
  return method === 'GET' ? [] : ['unsupported_media_type', 'payload_too_large', 'overloaded'];
}

/** Every error code of the route, in the order of `ERROR_TITLES`. */
function errorsOf(route: Route): ErrorCode[] {
  const codes = [
    ...COMMON_ERRORS,
    ...(route.access === 'public' ? [] : ACCESS_ERRORS),
    ...(route.isOperational === true ? [] : NEGOTIATION_ERRORS),
    ...(rateKindOf(route.access) === null ? [] : LIMIT_ERRORS),
    ...(route.body === null ? unwantedBodyErrors(route) : BODY_ERRORS),
    ...(route.streamTypes === undefined ? [] : STREAM_ERRORS),
    ...(route.isAlwaysServed === true ? [] : DATA_ERRORS),
    ...(ownerOf(route) === 'any' ? [] : LEADER_ERRORS),
    ...(mayNeedRows(route) ? HOLDER_ERRORS : []),
    ...(route.takesIdempotencyKey === true ? KEY_ERRORS : []),
    ...route.errors,
  ];
  return (Object.keys(ERROR_TITLES) as ErrorCode[]).filter((code) => codes.includes(code));
}

function groupByStatus(codes: readonly ErrorCode[]): Map<number, ErrorCode[]> {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const status = STATUS_OF_CODE[code];
    groups.set(status, [...(groups.get(status) ?? []), code]);
  }
  return groups;
}

/** The headers of routes with a rate limit. */
function rateHeaders(route: Route): Described {
  if (rateKindOf(route.access) === null) return {};
  return { 'RateLimit-Policy': headerRef('RateLimitPolicy'), RateLimit: headerRef('RateLimit') };
}

function describeProblem(
  status: number,
  codes: readonly ErrorCode[],
  headers: Described,
): Described {
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_TITLES[code]}.`).join('\n\n'),
    headers: {
      'X-Request-Id': headerRef('RequestId'),
      ...headers,
      ...(status === 401 || status === 403
        ? { 'WWW-Authenticate': headerRef('WwwAuthenticate') }
        : {}),
      ...(status === 503 || status === 429 ? { 'Retry-After': headerRef('RetryAfter') } : {}),
    },
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
        ),
      },
    },
  };
}

/** An example problem for each error code of the routes. */
function problemExamples(routes: readonly Route[]): Described {
  const context = {
    requestId: 'b1f0c2d4-5',
    path: '/v1/collections/articles',
    layout: BODY_LAYOUT,
  };
  const codes = new Set(routes.flatMap(errorsOf));
  return Object.fromEntries(
    [...codes].map((code) => {
      const { body } = problemReply(new SagittaError(code, `${ERROR_TITLES[code]}.`), context);
      return [code, { summary: ERROR_TITLES[code], value: JSON.parse(body) as unknown }];
    }),
  );
}
