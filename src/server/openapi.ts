// The OpenAPI 3.1 document, made from the very routes and schemas that serve. Named schemas become
// components; every operation lists its statuses, and under each the codes that it can carry.

import { z } from 'zod';
import { ERROR_TITLES, type ErrorCode } from '../common/errors.js';
import { rateKindOf } from './limits/rate-limit.js';
import { JSON_TYPE } from './media-types.js';
import { STATUS_OF_CODE } from './problem.js';
import type { Route } from './route.js';
import type { Schemas } from './schemas/all.js';

type JsonSchema = z.core.JSONSchema.BaseSchema;
type Described = Record<string, unknown>;

const API_VERSION = '1.0.0';

const TAGS = {
  Collections: 'Groups of vectors of one dimension and metric.',
  Vectors: 'Embeddings with metadata.',
  Query: 'Exact nearest-neighbour search, filtered by metadata.',
  Keys: 'API keys: who may come in, and with which scopes.',
  Backups: 'Copies of the whole service, made while it goes on.',
  Service: 'Bounds, health, metrics and this description.',
} as const satisfies Record<Route['tag'], string>;

/** What any route can answer, by what it takes. */
const COMMON_ERRORS: readonly ErrorCode[] = ['invalid_request', 'unknown_parameter', 'internal'];
const ACCESS_ERRORS: readonly ErrorCode[] = [
  'credentials_missing',
  'credentials_invalid',
  'credentials_unavailable',
  'insufficient_scope',
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
const KEY_ERRORS: readonly ErrorCode[] = [
  'idempotency_key_mismatch',
  'idempotency_in_flight',
  'idempotency_key_reused',
];

const OPERATIONAL_SERVERS = [{ url: '/', description: 'Never under a version.' }];

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
      version: API_VERSION,
      description:
        'A vector database that answers nearest-neighbour queries exactly. Success is always 200, with a JSON body or, where the route says so, a stream; every error is a problem (RFC 9457) with a `code`. Unknown members and parameters are refused. A path that does not exist is 404 `route_not_found`; another method than the described ones is 405 `method_not_allowed` with `Allow`.',
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/v1', description: 'The versioned paths.' },
      { url: '/', description: 'The same without the version.' },
    ],
    security: [{ bearer: [] }, { certificate: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas,
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
      'An API key (`sk_…`) or an OAuth 2.0 access token (JWT). A service without any credential configured needs none.',
  },
  certificate: { type: 'mutualTLS', description: 'A client certificate that the service knows.' },
} as const;

const header = (type: string, description: string) => ({ description, schema: { type } });

const HEADERS = {
  RequestId: header('string', "The request's `X-Request-Id` when it sent a plain one, else ours."),
  ETag: header('string', 'Of this representation; for `If-None-Match`, and `If-Match` of a PATCH.'),
  Location: header('string', 'Where the new collection is.'),
  RetryAfter: header('integer', 'Seconds after which a retry is worth it.'),
  RateLimitPolicy: header(
    'string',
    'What the principal may do: `"read";q=40000;w=2` is at most 40000 reads at once, which come back within 2 seconds (draft-ietf-httpapi-ratelimit-headers). Absent where nothing is bounded.',
  ),
  RateLimit: header(
    'string',
    'What is left of it: `"read";r=39999;t=1` is 39999 reads now, and all again in 1 second.',
  ),
  WwwAuthenticate: header('string', 'How to come back with a credential that will do (RFC 6750).'),
  ServerTiming: header(
    'string',
    'Where the time went, in milliseconds: filter, wait (for the engine), search, assemble, and total since the head of the request.',
  ),
  SagittaSequence: header(
    'integer',
    'The write of the collection that the reply reflects; pass it as `min_sequence`.',
  ),
  ContentDisposition: header('string', 'A name for the file: that of the collection.'),
  IdempotentReplayed: header('string', '`true` when this reply was given before.'),
} as const;

const headerRef = (name: keyof typeof HEADERS) => ({ $ref: `#/components/headers/${name}` });

interface Components {
  /** By name. */
  readonly schemas: Record<string, JsonSchema>;
  /** Any schema as it stands in the document: a reference where it is named. */
  describe(schema: z.ZodType): JsonSchema;
}

/** All schemas in one conversion, since names are only shared within one. */
function describeComponents(routes: readonly Route[], schemas: Schemas): Components {
  const all = new Map<z.ZodType, string>([[schemas.service.problem, 'problem']]);
  const add = (schema: z.ZodType | null) => {
    if (schema !== null && !all.has(schema)) all.set(schema, `schema${all.size}`);
  };
  for (const route of routes) {
    add(route.body);
    add(route.reply);
    for (const parameter of Object.values(route.query?.shape ?? {})) add(parameter as z.ZodType);
    for (const name of parametersOf(route.path)) add(pathSchema(route, name, schemas));
  }
  const shape = Object.fromEntries([...all].map(([schema, key]) => [key, schema]));
  const converted = toComponentRefs(
    z.toJSONSchema(z.object(shape), { io: 'input', unrepresentable: 'any' }),
  );
  const definitions = converted.$defs ?? {};
  for (const definition of Object.values(definitions)) delete definition.id;
  return {
    schemas: definitions,
    describe: (schema) => converted.properties![all.get(schema)!] as JsonSchema,
  };
}

function toComponentRefs(schema: JsonSchema): JsonSchema {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(text) as JsonSchema;
}

const parametersOf = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);

/** `{id}` is a collection's but for `/vectors/{id}`. */
function pathSchema(route: Route, name: string, { basics, keys }: Schemas): z.ZodType {
  if (name === 'key_id') return keys.id;
  const isVector = name === 'vector_id' || route.path === '/vectors/{id}';
  return isVector ? basics.vectorId : basics.collectionId;
}

function describePath(route: Route, schemas: Schemas, components: Components): Described {
  const parameters = parametersOf(route.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    description: 'Percent-encoded where a URL needs it.',
    schema: components.describe(pathSchema(route, name, schemas)),
  }));
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

/** What the route asks of the credential, in words and for generators. */
function describeAccess({ access, description }: Route): Described {
  if (access === 'public') {
    return { ...(description === undefined ? {} : { description }), security: [] };
  }
  const need =
    access === 'anyone' ? 'Needs any credential.' : `Needs the scope \`${access.scope}\`.`;
  return { description: description === undefined ? need : `${description} ${need}` };
}

function describeQuery(route: Route, components: Components): Described[] {
  return Object.entries(route.query?.shape ?? {}).map(([name, schema]) => {
    const described = components.describe(schema as z.ZodType);
    const { description, ...rest } = described;
    const isObject = described.$ref === '#/components/schemas/Filter';
    return {
      name,
      in: 'query',
      ...(description === undefined ? {} : { description }),
      ...(isObject ? { content: { 'application/json': { schema: rest } } } : { schema: rest }),
    };
  });
}

function describeHeaders(route: Route): Described[] {
  const headers: Described[] = [];
  const add = (name: string, description: string) =>
    headers.push({ name, in: 'header', description, schema: { type: 'string' } });
  if (route.takesIdempotencyKey === true) {
    add(
      'Idempotency-Key',
      'As `idempotency_key` in the body; the two are equal where both are sent.',
    );
  }
  if (route.takesIfMatch === true) {
    add('If-Match', 'Write only if the vector still has one of these ETags.');
  }
  if (route.method === 'GET' && route.sendsETag === true) {
    add('If-None-Match', 'Answer 304 when the representation still has one of these ETags.');
  }
  return headers;
}

function describeBody(body: z.ZodType, route: Route, components: Components): Described {
  const media = { schema: components.describe(body) };
  const content: Described = { [JSON_TYPE]: media };
  if (route.method === 'PATCH') content['application/merge-patch+json'] = media;
  for (const type of route.streamTypes ?? []) content[type] = STREAM;
  return { required: true, content };
}

/** The description of the route says what is in it. */
const STREAM = { schema: { type: 'string', format: 'binary' } } as const;

/** JSON, and a reply of one other type, have a schema. */
function describeContent(route: Route, schema: JsonSchema): Described {
  const { replyTypes = [JSON_TYPE] } = route;
  const hasSchema = (type: string) => type === JSON_TYPE || replyTypes.length === 1;
  return Object.fromEntries(
    replyTypes.map((type) => [type, hasSchema(type) ? { schema } : STREAM]),
  );
}

function describeReplies(route: Route, components: Components): Described {
  const schema = components.describe(route.reply);
  const content = describeContent(route, schema);
  const replies: Record<string, Described> = {
    200: {
      description: 'Success.',
      headers: {
        'X-Request-Id': headerRef('RequestId'),
        ...rateHeaders(route),
        ...(route.sendsETag === true ? { ETag: headerRef('ETag') } : {}),
        ...(route.sendsLocation === true ? { Location: headerRef('Location') } : {}),
        ...(route.sendsServerTiming === true ? { 'Server-Timing': headerRef('ServerTiming') } : {}),
        ...(route.sendsSequence === true
          ? { 'Sagitta-Sequence': headerRef('SagittaSequence') }
          : {}),
        ...(route.sendsFile === true
          ? { 'Content-Disposition': headerRef('ContentDisposition') }
          : {}),
        ...(route.takesIdempotencyKey === true
          ? { 'Idempotent-Replayed': headerRef('IdempotentReplayed') }
          : {}),
      },
      content,
    },
  };
  if (route.method === 'GET' && route.sendsETag === true) {
    replies['304'] = {
      description: 'The client has it.',
      headers: { ETag: headerRef('ETag'), ...rateHeaders(route) },
    };
  }
  if (route.otherReply !== undefined) {
    const { status, description } = route.otherReply;
    replies[status] = { description, content };
  }
  for (const [status, codes] of groupByStatus(errorsOf(route))) {
    replies[status] = describeProblem(status, codes, status === 429 ? rateHeaders(route) : {});
  }
  return replies;
}

/** Every code that the route can give, in the order of the table of errors. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = [
    ...COMMON_ERRORS,
    ...(route.access === 'public' ? [] : ACCESS_ERRORS),
    ...(route.isOperational === true ? [] : NEGOTIATION_ERRORS),
    ...(rateKindOf(route.access) === null ? [] : LIMIT_ERRORS),
    ...(route.body === null ? [] : BODY_ERRORS),
    ...(route.streamTypes === undefined ? [] : STREAM_ERRORS),
    ...(route.isAlwaysServed === true ? [] : DATA_ERRORS),
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

/** Of routes whose requests are counted. */
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
      'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    },
  };
}
