// The table of settings: every one's name, default, unit and meaning. Help texts, documents and
// checks are made from it; `config.ts` reads it against the environment and the command line.

import { z } from 'zod';
import { DEFAULT_LIMITS, type Limits } from '../common/limits.js';

export const ENGINE_CHOICES = ['auto', 'cuda', 'tensorflow', 'simd', 'wasm', 'reference'] as const;
export const SIMD_CHOICES = [
  'auto',
  'avx512_vnni',
  'avx_vnni',
  'avx2',
  'neon_dotprod',
  'reference',
] as const;
/** Signatures by a private key: a shared secret would let every verifier issue tokens. */
export const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  readonly engine: (typeof ENGINE_CHOICES)[number];
  /** The instruction set of the simd engine. */
  readonly simd: (typeof SIMD_CHOICES)[number];
  /** Bytes on each GPU; null for nearly all that is free. */
  readonly deviceMemory: number | null;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** Of requests that name no collection. */
  readonly defaultCollection: string | null;
  /** Worker threads; null for one a core. */
  readonly threads: number | null;
  readonly shutdownMs: number;
  /** Paths of PEM files; both or neither. */
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
  /** Path of a PEM file: who signs the certificates of clients. */
  readonly tlsClientCa: string | null;
  /** Path of a JSON file: which certificate is which principal. */
  readonly tlsPrincipals: string | null;
  /** URL or path of the JSON Web Key Set that signs access tokens. */
  readonly jwks: string | null;
  readonly jwtIssuer: string | null;
  readonly jwtAudience: string | null;
  readonly jwtAlgorithms: readonly string[];
  /** Addresses and CIDR blocks of gateways whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  /** Whether clear text, or no credentials, on another than a loopback address is wanted. */
  readonly insecure: boolean;
  /** Queries that take longer are logged. */
  readonly slowQueryMs: number;
  /** Where backups that are asked for over the network go; null for nowhere. */
  readonly backupDir: string | null;
  /** Where traces go, by the variables that OpenTelemetry defines; null for nowhere. */
  readonly tracesUrl: string | null;
  readonly limits: Limits;
}

type SettingName = Exclude<keyof Config, 'limits' | 'tracesUrl'>;

export interface Setting {
  readonly schema: z.ZodType;
  readonly default: unknown;
  readonly unit: string | null;
  readonly expected: string;
  readonly help: string;
}

const text = (what: string) => ({ schema: z.string().min(1), expected: what });
const choice = <const Names extends readonly string[]>(names: Names) => ({
  schema: z.enum(names),
  expected: names.join(', '),
});
const integer = (min: number, max: number) => ({
  schema: z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max)),
  expected: `an integer from ${min} to ${max}`,
});

const list = (element: z.ZodType<string, string>, expected: string) => ({
  schema: z
    .string()
    .transform((found) => found.split(',').map((part) => part.trim()))
    .pipe(z.array(element).min(1)),
  expected,
});

const SETTINGS = {
  host: {
    ...text('an address or a name'),
    default: '127.0.0.1',
    unit: null,
    help: 'Where to listen. Another than a loopback address needs credentials, and TLS or a gateway that ends it.',
  },
  port: {
    ...integer(0, 65_535),
    default: 8484,
    unit: null,
    help: 'The port to listen on; 0 takes a free one.',
  },
  dataDir: {
    ...text('a path'),
    default: './data',
    unit: null,
    help: 'The directory that holds everything. One process at a time may use it.',
  },
  engine: {
    ...choice(ENGINE_CHOICES),
    default: 'auto',
    unit: null,
    help: 'What scores vectors; auto takes the fastest that works on this machine. All give the same answers.',
  },
  simd: {
    ...choice(SIMD_CHOICES),
    default: 'auto',
    unit: null,
    help: 'The instruction set that the simd engine uses; auto takes the best that the processor has. All give the same answers.',
  },
  deviceMemory: {
    ...integer(268_435_456, 1_099_511_627_776),
    default: null,
    unit: 'bytes',
    help: 'Memory of each GPU that the cuda engine may use; 90 % of what is free at the start when not set. What has no room is searched on the CPU.',
  },
  logLevel: {
    ...choice(LOG_LEVELS),
    default: 'info',
    unit: null,
    help: 'The least important messages to log.',
  },
  defaultCollection: {
    ...text('the id of a collection'),
    default: null,
    unit: null,
    help: 'The collection of requests that name none, such as PUT /vectors/{id}.',
  },
  threads: {
    ...integer(1, 1024),
    default: null,
    unit: null,
    help: 'Worker threads for filters, scores and large bodies; one a core when not set.',
  },
  shutdownMs: {
    ...integer(0, 3_600_000),
    default: 10_000,
    unit: 'milliseconds',
    help: 'How long requests may take to finish after a signal to stop.',
  },
  tlsCert: {
    ...text('a path of a PEM file'),
    default: null,
    unit: null,
    help: 'The certificate chain of the server. With it, TLS 1.3 is all that is spoken, as HTTP/2 or HTTP/1.1. Read again when it changes.',
  },
  tlsKey: {
    ...text('a path of a PEM file'),
    default: null,
    unit: null,
    help: 'The private key of that certificate.',
  },
  tlsClientCa: {
    ...text('a path of a PEM file'),
    default: null,
    unit: null,
    help: 'The authorities whose certificates clients may show in place of a key or a token (mutual TLS).',
  },
  tlsPrincipals: {
    ...text('a path of a JSON file'),
    default: null,
    unit: null,
    help: 'Which certificate is which principal, with which scopes; docs/operations.md has the form.',
  },
  jwks: {
    ...text('an https URL, or a path of a JSON file'),
    default: null,
    unit: null,
    help: 'The JSON Web Key Set that verifies access tokens (OAuth 2.0, JWT).',
  },
  jwtIssuer: {
    ...text('the claim iss'),
    default: null,
    unit: null,
    help: 'Who must have issued an access token.',
  },
  jwtAudience: {
    ...text('the claim aud'),
    default: null,
    unit: null,
    help: 'For whom an access token must be meant.',
  },
  jwtAlgorithms: {
    ...list(z.enum(JWT_ALGORITHMS), `some of ${JWT_ALGORITHMS.join(', ')}, with commas`),
    default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    unit: null,
    help: 'The algorithms by which an access token may be signed.',
  },
  trustedProxies: {
    ...list(
      z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]),
      'addresses or CIDR blocks, with commas',
    ),
    default: [],
    unit: null,
    help: 'Gateways that end TLS before Sagitta: what they say of the client in X-Forwarded-For is believed.',
  },
  insecure: {
    schema: z.enum(['yes', 'no']).transform((answer) => answer === 'yes'),
    expected: 'yes or no',
    default: false,
    unit: null,
    help: 'Listen on another than a loopback address although there is no TLS, or no credential is configured and everybody who reaches it may do everything.',
  },
  slowQueryMs: {
    ...integer(0, 3_600_000),
    default: 1_000,
    unit: 'milliseconds',
    help: 'Queries that take at least so long are logged, without their vectors and values.',
  },
  backupDir: {
    ...text('a path'),
    default: null,
    unit: null,
    help: 'The directory under which POST /v1/backups puts backups; without it that route refuses.',
  },
} as const satisfies Record<SettingName, Setting>;

const bound = (unit: string, min: number, max: number, help: string) => ({ unit, min, max, help });

/** Ids are at most so long wherever they are stored; fewer may be allowed. */
const VECTOR_ID_BYTES_MAX = DEFAULT_LIMITS.vectorIdBytesMax;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What may be asked of the bounds in `limits.ts`, which has the reasons. */
const BOUNDS = {
  dimensionMax: bound('elements', 1, 16_384, 'The longest vector.'),
  bodyBytesMax: bound('bytes', 1_024, 512_000_000, 'The largest JSON body.'),
  batchRowsMax: bound('vectors', 1, 100_000, 'Vectors in one JSON body.'),
  batchQueriesMax: bound('queries', 1, 65_536, 'Queries in one JSON body, or lists in one recall.'),
  pageLimitMax: bound('records', 1, 10_000, 'The largest page.'),
  pageLimitDefault: bound('records', 1, 10_000, 'The page of requests that name no limit.'),
  topKMax: bound('matches', 1, 10_000, 'Matches of a query in one page.'),
  topKDefault: bound('matches', 1, 10_000, 'Matches of a query that names no top_k.'),
  filterNodesMax: bound('conditions', 1, 10_000, 'Conditions of a filter.'),
  filterDepthMax: bound('levels', 1, 32, 'How deep $and, $or and $not nest.'),
  filterValuesMax: bound('values', 1, 1_000_000, 'Values of one $in, $nin or $contains_*.'),
  filterPathCharactersMax: bound(
    'characters',
    1,
    4_096,
    'The longest name of a field in a filter.',
  ),
  filterCacheBytesMax: bound(
    'bytes',
    0,
    64 * 1024 * 1024 * 1024,
    'Kept results of filters, over all collections; 0 keeps none.',
  ),
  vectorIdBytesMax: bound('bytes', 26, VECTOR_ID_BYTES_MAX, 'The longest id of a vector.'),
  metadataBytesMax: bound('bytes', 2, 1_048_576, 'Metadata of one vector, as sent.'),
  metadataDepthMax: bound('levels', 1, 32, 'How deep metadata nests.'),
  metadataColumnsMax: bound('columns', 0, 4_096, 'Metadata paths of one segment kept as columns.'),
  segmentRowsMax: bound('rows', 64, 16_777_216, 'Rows of a segment before it is sealed.'),
  segmentValueBytesMax: bound(
    'bytes',
    65_536,
    2_147_483_648,
    'Bytes of values of a segment before it is sealed.',
  ),
  collectionsMax: bound('collections', 1, 100_000, 'Collections of the service.'),
  requestMsMax: bound('milliseconds', 100, 3_600_000, 'The deadline of a request.'),
  retentionMs: bound('milliseconds', 1_000, 30 * DAY_MS, 'How long a cursor works.'),
  idempotencyMs: bound('milliseconds', 1_000, 30 * DAY_MS, 'How long an idempotency key is known.'),
  queuedQueriesMax: bound('queries', 1, 1_000_000, 'Queries that wait for the engine.'),
  queuedWritesMax: bound('writes', 1, 1_000_000, 'Writes that wait for a commit of a collection.'),
  queuedTasksMax: bound(
    'tasks',
    1,
    1_000_000,
    'Filters and large bodies that wait for a worker thread.',
  ),
  idempotencyKeyCharactersMax: bound('characters', 1, 1_024, 'The longest idempotency key.'),
  descriptionCharactersMax: bound('characters', 0, 100_000, 'The longest description.'),
  labelsMax: bound('labels', 0, 1_024, 'Labels of a collection.'),
  labelCharactersMax: bound('characters', 1, 4_096, 'The longest name or text of a label.'),
  readRateMax: bound(
    'queries a second',
    0,
    1e9,
    'Reads of one principal: queries, or vectors read by id; 0 for no bound.',
  ),
  readBurstMax: bound('queries', 1, 1e9, 'Reads that one principal may have saved up.'),
  writeRateMax: bound('vectors a second', 0, 1e9, 'Writes of one principal; 0 for no bound.'),
  writeBurstMax: bound('vectors', 1, 1e9, 'Writes that one principal may have saved up.'),
  bodyBytesInFlightMax: bound(
    'bytes',
    1_048_576,
    1e12,
    'Bodies that are being received or worked on, all together.',
  ),
  replyBytesInFlightMax: bound(
    'bytes',
    1_048_576,
    1e12,
    'Replies that their clients have not taken yet, all together.',
  ),
  eventLoopDelayMsMax: bound(
    'milliseconds',
    10,
    60_000,
    'A longer delay of the main thread is overload.',
  ),
  connectionsMax: bound('connections', 1, 1_000_000, 'Open connections.'),
  connectionsPerAddressMax: bound(
    'connections',
    1,
    1_000_000,
    'Open connections of one address, or of one IPv6 network of 64 bits; those of this machine and of trusted proxies are not counted.',
  ),
  headerMsMax: bound('milliseconds', 100, 600_000, 'For the arrival of the head of a request.'),
  arrivalMsMax: bound(
    'milliseconds',
    1_000,
    3_600_000,
    'For the arrival of a whole request; streams may take longer.',
  ),
  stalledMsMax: bound(
    'milliseconds',
    1_000,
    3_600_000,
    'How long a client may take none of its reply.',
  ),
  keepAliveMs: bound('milliseconds', 0, 3_600_000, 'How long an idle connection is kept.'),
} as const satisfies Record<keyof Limits, ReturnType<typeof bound>>;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];
export const BOUND_NAMES = Object.keys(BOUNDS) as (keyof Limits)[];

export const ALL_SETTINGS: ReadonlyMap<string, Setting> = new Map([
  ...Object.entries<Setting>(SETTINGS),
  ...Object.entries(BOUNDS).map(([name, { min, max, unit, help }]): [string, Setting] => [
    name,
    { ...integer(min, max), unit, help, default: DEFAULT_LIMITS[name as keyof Limits] },
  ]),
]);
