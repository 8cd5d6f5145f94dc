// The table of settings: name, default, unit, accepted values and help of each. The help of the command line and
// docs/configuration.md are generated from it; `config.ts` applies it to the environment and the command line.

import { z } from 'zod';
import { LIMITS, type Limit, type Limits } from '../common/limits.js';
import { isOrigin } from '../common/origin.js';

export const ENGINE_CHOICES = ['auto', 'cuda', 'tensorflow', 'simd', 'wasm', 'reference'] as const;
const VALUES_CHOICES = ['auto', 'mapped', 'memory'] as const;
const SIMD_CHOICES = [
  'auto',
  'avx512_amx',
  'avx512_vnni',
  'avx_vnni',
  'avx2',
  'neon_dotprod',
  'reference',
] as const;
/** Only asymmetric algorithms: with a shared secret, every verifier could issue tokens. */
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
const JWT_TYPES = ['any', 'at+jwt'] as const;
export type JwtTypes = (typeof JWT_TYPES)[number];
const CONSOLE_CHOICES = ['on', 'off'] as const;
const CORS_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** `auto` is text on a terminal and JSON elsewhere. */
const LOG_FORMATS = ['auto', 'text', 'json'] as const;
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** The shared file store: a folder or an S3 bucket. */
export type BlobStoreSettings =
  | { readonly kind: 'folder'; readonly folder: string }
  | {
      readonly kind: 's3';
      /** Does not include the bucket, which becomes the first part of the path. */
      readonly endpoint: string;
      readonly bucket: string;
      /** Precedes every name; empty, or ends with a slash. */
      readonly prefix: string;
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string;
    };

/** A service that turns texts into vectors. */
export interface EmbeddingEndpoint {
  readonly name: string;
  readonly url: string;
  /** Sent as a bearer token; null if there is none. */
  readonly key: string | null;
}

/** Stands for the built-in model in place of the name of an endpoint. */
export const BUILTIN = 'builtin';

/** Valid names of embedding endpoints. */
export const EMBEDDING_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export interface Setting {
  /** Created only for settings that are set, because creating all schemas takes a tenth of the time of a start. */
  readonly schema: () => z.ZodType;
  /** Absent for null. */
  readonly default?: unknown;
  readonly unit?: string;
  readonly expected: string;
  readonly help: string;
  /**
   * A secret is not an option of the command line, which other processes can see. It is read from the environment, or
   * from a file named by the variable with the suffix `_FILE`. Messages never contain its value.
   */
  readonly isSecret?: boolean;
}

/** A setting without a default may be null. */
type ValueOf<Described extends Setting> =
  | z.output<ReturnType<Described['schema']>>
  | (Described extends { readonly default: unknown } ? never : null);

const text = (what: string) => ({ schema: () => z.string().min(1), expected: what });
const choice = <const Names extends readonly string[]>(names: Names) => ({
  schema: () => z.enum(names),
  expected: names.join(', '),
});
const integer = (min: number, max: number) => ({
  schema: () =>
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number)
      .pipe(z.int().min(min).max(max)),
  expected: `an integer from ${min} to ${max}`,
});

const YES_OR_NO = {
  schema: () => z.enum(['yes', 'no']).transform((answer) => answer === 'yes'),
  expected: 'yes or no',
};

const list = (element: () => z.ZodType<string, string>, expected: string) => ({
  schema: (): z.ZodType<readonly string[]> =>
    z
      .string()
      .transform((found) => found.split(',').map((part) => part.trim()))
      .pipe(z.array(element()).min(1)),
  expected,
});

const headerNames = list(
  () => z.string().regex(/^[\w!#$%&'+.^`|~-]+$/),
  'a comma-separated list of names of headers',
);

const SETTINGS = {
  host: {
    ...text('an address or a host name'),
    default: '127.0.0.1',
    help: 'The address to listen on. An address other than loopback requires credentials, and TLS or a trusted proxy that terminates it.',
  },
  port: {
    ...integer(0, 65_535),
    default: 8484,
    help: 'The port to listen on; 0 picks a free port.',
  },
  livenessPort: {
    ...integer(0, 65_535),
    help: 'A second port, on the same address and without TLS, on which a thread of its own answers GET /livez: 200 while the main thread runs, 503 if it has not run for 5 seconds; 0 picks a free port. By default there is none.',
  },
  dataDir: {
    ...text('a path'),
    default: './data',
    help: 'The data directory. Only one process at a time can use it.',
  },
  values: {
    ...choice(VALUES_CHOICES),
    default: 'auto',
    help: 'Whether stored vectors stay on disk: mapped maps segment files, so that the system can take their memory back; memory reads them whole; auto maps files of at least 1 MiB if the addon for files is built and the file system is local. The results are the same.',
  },
  engine: {
    ...choice(ENGINE_CHOICES),
    default: 'auto',
    help: 'The engine that scores vectors; auto picks the fastest one that works on this machine. All engines return the same results.',
  },
  simd: {
    ...choice(SIMD_CHOICES),
    default: 'auto',
    help: 'The instruction set of the simd engine; auto picks the best one that the processor supports. All return the same results.',
  },
  deviceMemory: {
    ...integer(268_435_456, 1_099_511_627_776),
    unit: 'bytes',
    help: 'Memory that the cuda engine may use on each GPU; by default 90 % of the memory that is free at startup. Segments that do not fit are searched on the CPU.',
  },
  logLevel: {
    ...choice(LOG_LEVELS),
    default: 'info',
    help: 'The lowest level of messages to log.',
  },
  logFormat: {
    ...choice(LOG_FORMATS),
    default: 'auto',
    help: 'The format of log lines on stderr: text is for people, with ISO times in UTC and level names; json is one object per line; auto is text on a terminal and json elsewhere.',
  },
  defaultCollection: {
    ...text('the id of a collection'),
    help: 'The collection used by requests that name none, such as PUT /vectors/{id}.',
  },
  console: {
    ...choice(CONSOLE_CHOICES),
    default: 'on',
    help: 'Whether the console, a web page for people, is served at /console/. Its files need no credential; what it shows comes through the API.',
  },
  threads: {
    ...integer(1, 1024),
    help: 'The number of worker threads for filters, scoring and large bodies; by default one per core.',
  },
  memory: {
    ...integer(268_435_456, 1_099_511_627_776_000),
    unit: 'bytes',
    help: 'Memory that the service may use besides mapped files; by default the limit of its container (cgroup) or the memory of the machine. Limits on the total size of bodies, replies and cached filters are lowered to shares of it unless they are set, and when little is left, only one large body and one large reply are admitted at a time; docs/operations.md lists the shares.',
  },
  shutdownMs: {
    ...integer(0, 3_600_000),
    default: 10_000,
    unit: 'milliseconds',
    help: 'How long requests in progress may take to finish after SIGTERM or SIGINT.',
  },
  tlsCert: {
    ...text('the path of a PEM file'),
    help: "The server's certificate chain. Enables TLS 1.3, with HTTP/2 or HTTP/1.1; clear text is then refused. Reloaded when the file changes.",
  },
  tlsKey: {
    ...text('the path of a PEM file'),
    help: "The private key of the server's certificate.",
  },
  tlsClientCa: {
    ...text('the path of a PEM file'),
    help: 'The authorities that sign client certificates, which clients may present instead of a key or a token (mutual TLS).',
  },
  tlsPrincipals: {
    ...text('the path of a JSON file'),
    help: 'Maps client certificates to principals and their scopes; docs/operations.md describes the format.',
  },
  jwks: {
    ...text('an https URL, or the path of a JSON file'),
    help: 'The JSON Web Key Set that verifies access tokens (OAuth 2.0, JWT).',
  },
  jwtIssuer: {
    ...text('the value of the claim iss'),
    help: 'The issuer that access tokens must come from.',
  },
  jwtAudience: {
    ...text('the value of the claim aud'),
    help: 'The audience that access tokens must be issued for.',
  },
  jwtAlgorithms: {
    ...list(() => z.enum(JWT_ALGORITHMS), `a comma-separated list of ${JWT_ALGORITHMS.join(', ')}`),
    default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    help: 'The signature algorithms accepted for access tokens.',
  },
  jwtTypes: {
    ...choice(JWT_TYPES),
    default: 'any',
    help: 'Whether the header of access tokens must have the type at+jwt (RFC 9068). With any, it may also have the type JWT or none, as most identity providers send; ID tokens are then recognized by their claims and refused.',
  },
  trustedProxies: {
    ...list(
      () => z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]),
      'a comma-separated list of addresses or CIDR blocks',
    ),
    default: [],
    help: 'Proxies that terminate TLS in front of Sagitta; their X-Forwarded-For headers are trusted.',
  },
  hostNames: {
    ...list(
      () => z.string().regex(/^(\*|(\*\.)?[\w-]+(\.[\w-]+)*)$/),
      'a comma-separated list of names of hosts without ports (sagitta, *.example.org), or *',
    ),
    default: [],
    help: 'If no credential is required: the names under which the service may be reached, besides localhost, IP addresses and the name of the machine; *.example.org for all subdomains, or * for all names. Requests with another name in the Host header are refused, because any web site can point a name of its own to the address of the service (DNS rebinding).',
  },
  corsOrigins: {
    ...list(
      () => z.string().refine((found) => found === '*' || isOrigin(found)),
      'a comma-separated list of origins as browsers send them (https://app.example.org, without a path), or *',
    ),
    default: [],
    help: 'The origins of web pages that may use the service from a browser (CORS), or * for all, which requires credentials; by default only its own. docs/operations.md has an example.',
  },
  corsMethods: {
    ...list(() => z.enum(CORS_METHODS), `a comma-separated list of ${CORS_METHODS.join(', ')}`),
    default: [...CORS_METHODS],
    help: 'The methods that pages of other origins may use.',
  },
  corsHeaders: {
    ...headerNames,
    default: [
      'Accept',
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'If-Match',
      'If-None-Match',
      'Sagitta-Consistency',
      'Sagitta-Session',
      'Traceparent',
      'Tracestate',
      'X-Request-Id',
    ],
    help: 'The request headers that pages of other origins may send. A list replaces the default, which contains all headers that the API reads.',
  },
  corsExposedHeaders: {
    ...headerNames,
    default: [
      'Allow',
      'Content-Disposition',
      'ETag',
      'Idempotent-Replayed',
      'Location',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'Sagitta-Row-Count',
      'Sagitta-Sequence',
      'Sagitta-Session',
      'Sagitta-Warnings',
      'Sagitta-With-Sequence',
      'Server-Timing',
      'WWW-Authenticate',
      'X-Request-Id',
    ],
    help: 'The reply headers that pages of other origins may read. A list replaces the default, which contains all headers that the API sends.',
  },
  corsMaxAgeSeconds: {
    ...integer(0, 86_400),
    default: 7_200,
    unit: 'seconds',
    help: 'How long browsers may cache the permissions of pages of other origins. Chromium caches them for at most two hours.',
  },
  insecure: {
    ...YES_OR_NO,
    default: false,
    help: 'Allows listening on an address other than loopback without TLS, or without credentials, in which case anyone who can reach the service has full access.',
  },
  slowQueryMs: {
    ...integer(0, 3_600_000),
    default: 1_000,
    unit: 'milliseconds',
    help: 'Queries that take at least this long are logged, without their vectors and filter values.',
  },
  backupDir: {
    ...text('a path'),
    help: 'The directory in which POST /v1/backups creates backups; without it the route returns an error.',
  },
  cluster: {
    ...list(
      () => z.string().regex(/^(nats|tls):\/\/[^\s,]+$/),
      'URLs of NATS servers (nats://host:4222), separated by commas',
    ),
    help: 'The NATS servers, with JetStream, of the cluster of which this process is a node; by default it runs alone. Servers with tls:// are reached only over TLS. A URL may contain user:password@ or token@ before its host. docs/cluster.md describes clusters.',
  },
  clusterSecret: {
    // 32 characters of base64 carry 192 bits.
    ...list(
      () => z.string().regex(/^[^\s,]{32,1024}$/),
      'at least 32 characters, the same on all nodes; or the current and the earlier secret, separated by a comma',
    ),
    isSecret: true,
    help: 'A secret that only the nodes of the cluster know, such as the output of openssl rand -base64 32. Nodes sign with it what they write to NATS and to the shared files, and what they send to each other. Required unless everything is on loopback.',
  },
  clusterUser: {
    ...text('a name'),
    help: 'The user of the node for the NATS servers.',
  },
  clusterPassword: {
    ...text('a text'),
    isSecret: true,
    help: 'The password of this user.',
  },
  clusterToken: {
    ...text('a text'),
    isSecret: true,
    help: 'The token of the node for the NATS servers, instead of a user.',
  },
  clusterNkey: {
    schema: () => z.string().regex(/^SU[A-Z2-7]{56}$/),
    expected: 'the seed of a user (SU…)',
    isSecret: true,
    help: 'The nkey of the node for the NATS servers, instead of a user.',
  },
  clusterCredentials: {
    ...text('the path of a .creds file'),
    help: 'The credentials of the node for the NATS servers, a JWT with its nkey, instead of a user. The file is read again for each connection.',
  },
  clusterTlsCa: {
    ...text('the path of a PEM file'),
    help: 'The authorities that sign the certificates of the NATS servers; by default those that Node trusts. All connections are then encrypted.',
  },
  clusterTlsCert: {
    ...text('the path of a PEM file'),
    help: 'The certificate of the node for the NATS servers.',
  },
  clusterTlsKey: {
    ...text('the path of a PEM file'),
    help: 'The private key of this certificate.',
  },
  clusterInsecure: {
    ...YES_OR_NO,
    default: false,
    help: 'Whether the node may use NATS servers that are reachable from other machines and require no credentials. Anyone who can reach them can then read all data and stop the cluster.',
  },
  clusterMonitors: {
    ...list(
      () => z.string().regex(/^https?:\/\/[^\s,/@]+\/?$/),
      'URLs of monitoring ports (http://host:8222), separated by commas',
    ),
    help: 'The monitoring ports of all NATS servers of the cluster. The node does not start unless they show that the servers sync every message before they acknowledge it; without this setting it starts with a warning.',
  },
  clusterName: {
    schema: () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/),
    expected: 'letters, digits, _ and -, at most 32',
    default: 'sagitta',
    help: 'The name of the cluster. The names of its streams and messages begin with it, so that several clusters can share NATS servers.',
  },
  blobs: {
    ...text('s3://bucket/prefix, or the path of a folder that all nodes share'),
    help: 'Where the nodes of a cluster share files: the path of a folder that all have mounted, or s3://bucket/prefix?endpoint=https://host&region=name. The keys for S3 are read from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.',
  },
  clusterNode: {
    schema: () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/),
    expected: 'letters, digits, _, . and -, at most 64',
    help: 'The name of this node, unique in the cluster; by default the name of the machine.',
  },
  clusterZone: {
    // Kubernetes passes an empty text for a label that a pod does not have.
    schema: () =>
      z
        .string()
        .regex(/^([A-Za-z0-9][A-Za-z0-9_.-]{0,63})?$/)
        .transform((zone) => (zone === '' ? null : zone)),
    expected: 'letters, digits, _, . and -, at most 64; empty if it is unknown',
    help: 'What this node shares with others that may fail together with it: a rack, a building, a zone of a cloud. Collections with a replication factor are spread over as many zones as possible.',
  },
  clusterUrl: {
    schema: () => z.string().regex(/^https?:\/\/[^\s/@]+$/),
    expected: 'an http or https URL without a path, a user and a password',
    help: 'The URL at which the other nodes of the cluster reach this one; by default the address that it listens on.',
  },
  clusterReplicas: {
    // Two servers tolerate no more failures than one, because a majority of two is both.
    schema: () =>
      integer(1, 5)
        .schema()
        .refine((count) => count !== 2),
    expected: '1, or an integer from 3 to 5',
    default: 3,
    unit: 'servers',
    help: 'The number of NATS servers that store each log of the cluster. With 1, for trying things out, acknowledged writes are lost with that server.',
  },
  clusterFound: {
    ...YES_OR_NO,
    default: false,
    help: 'Whether this node, as the first one, brings the data of its data directory into an empty cluster: data of a service that ran alone, or of a restored backup. Has no effect once the cluster has been written to.',
  },
  clusterSilentMs: {
    ...integer(1_000, 3_600_000),
    default: 1_500,
    unit: 'milliseconds',
    help: 'How long the node that leads may be silent before another node takes over. A value that is too small costs pauses of writes, but loses nothing.',
  },
  clusterReplaceMs: {
    ...integer(1_000, 604_800_000),
    default: 600_000,
    unit: 'milliseconds',
    help: 'How long a node may be silent before other nodes load the collections with a replication factor that it held. If this is shorter than a restart, data is copied for nothing.',
  },
  clusterSnapshotBytes: {
    ...integer(1, 1_099_511_627_776),
    default: 268_435_456,
    unit: 'bytes',
    help: 'How much is written to a log before its owner takes a snapshot of it: a copy of the collection in SAGITTA_BLOBS, from which new nodes start. The log is then trimmed to the snapshot before.',
  },
  clusterFileCopies: {
    ...integer(1, 1_000),
    unit: 'nodes',
    help: 'How many of the nodes that hold a collection with a replication factor keep the whole of each segment file. The others keep only ids and metadata columns, and read the rest from SAGITTA_BLOBS when they need it. By default, all keep everything. Set it alike on all nodes.',
  },
  clusterCacheBytes: {
    ...integer(1_048_576, 1_099_511_627_776),
    default: 10_737_418_240,
    unit: 'bytes',
    help: 'Disk space for parts of segment files that are fetched from SAGITTA_BLOBS, where SAGITTA_CLUSTER_FILE_COPIES lets nodes keep only a part of some.',
  },
  clusterScatterValues: {
    ...integer(1, 100_000_000_000_000),
    default: 33_554_432,
    unit: 'values',
    help: 'From how many values on (queries times rows times dimension) the nodes share a search, each of them searching some of the rows. A smaller search is answered by the node that receives it.',
  },
  embeddingEndpoints: {
    ...list(
      () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}=https?:\/\/\S+$/),
      'names and URLs, name=https://host/v1/embeddings, separated by commas',
    ),
    help: 'Endpoints with the embeddings API of OpenAI, which turn texts into vectors. Collections refer to them by name; no others are called. Without endpoints, texts are rejected.',
  },
  embeddingKeys: {
    ...list(
      () => z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}=[A-Za-z_]\w*$/),
      'names of endpoints and of environment variables, name=VARIABLE, separated by commas',
    ),
    default: [],
    help: 'The environment variables that contain the keys of embedding endpoints; an endpoint that is not listed gets no key.',
  },
  embeddingTimeoutMs: {
    ...integer(1, 600_000),
    default: 10_000,
    unit: 'milliseconds',
    help: 'How long a call to an embedding endpoint may take.',
  },
  embeddingAttempts: {
    ...integer(1, 10),
    default: 3,
    unit: 'calls',
    help: 'The maximum number of calls for the same texts, if an embedding endpoint replies with 429 or 5xx, too late or not at all.',
  },
  embeddingBatchTexts: {
    ...integer(1, 2_048),
    default: 64,
    unit: 'texts',
    help: 'The maximum number of texts in one call to an embedding endpoint.',
  },
} as const satisfies Record<string, Setting>;

type SettingName = keyof typeof SETTINGS;

export interface Config extends Omit<Settings, 'memory'> {
  /** The memory that the process may use, in bytes. */
  readonly memory: number;
  readonly limits: Limits;
  /** Whether the console is served, if its files have been built. */
  readonly isConsoleServed: boolean;
  /** The store that `blobs` describes, with its credentials. */
  readonly blobStore: BlobStoreSettings | null;
  /** The endpoints of `embeddingEndpoints` with their keys. */
  readonly embedding: readonly EmbeddingEndpoint[];
  /** The OTLP endpoint for traces from OpenTelemetry's own variables; null for none. */
  readonly tracesUrl: string | null;
  /** The service manager that started the process, from systemd's own variables; null for none that is notified. */
  readonly serviceManager: {
    /** How long it waits for the next report that the process runs; null if it expects none. */
    readonly watchdogMs: number | null;
  } | null;
  /** Variables of Kubernetes Services that look like settings. */
  readonly ignoredVariables: readonly string[];
}

type Settings = { readonly [name in SettingName]: ValueOf<(typeof SETTINGS)[name]> };

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export const ALL_SETTINGS: ReadonlyMap<string, Setting> = new Map([
  ...Object.entries<Setting>(SETTINGS),
  ...Object.entries<Limit>(LIMITS).map(([name, { min, max, ...limit }]): [string, Setting] => [
    name,
    { ...integer(min, max), ...limit },
  ]),
]);
