// The configuration: the only reader of the environment. One table says every setting's name,
// default, unit and meaning; help texts, documents and checks are made from it. A setting comes
// from the command line, else from the environment, else it has its default.

import { z } from 'zod';
import { SagittaError } from './errors.js';
import { DEFAULT_LIMITS, type Limits } from './limits.js';

export const ENGINE_CHOICES = ['auto', 'cuda', 'tensorflow', 'simd', 'wasm', 'reference'] as const;
export const SIMD_CHOICES = [
  'auto',
  'avx512_vnni',
  'avx_vnni',
  'avx2',
  'neon_dotprod',
  'reference',
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
  /** Whether serving everybody who reaches another than the loopback address is wanted. */
  readonly insecure: boolean;
  readonly limits: Limits;
}

/** One row of the help text and of the documents. */
export interface SettingDescription {
  /** In the environment. */
  readonly variable: string;
  /** On the command line. */
  readonly option: string;
  /** Key of an override. */
  readonly name: string;
  readonly unit: string | null;
  /** As text; empty where there is none. */
  readonly default: string;
  /** What is accepted, in words. */
  readonly expected: string;
  readonly help: string;
}

interface Setting {
  readonly schema: z.ZodType;
  readonly default: unknown;
  readonly unit: string | null;
  readonly expected: string;
  readonly help: string;
}

const PREFIX = 'SAGITTA_';
/** Read by the tests only. */
const TEST_PREFIX = 'SAGITTA_TEST_';

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

const SETTINGS = {
  host: {
    ...text('an address or a name'),
    default: '127.0.0.1',
    unit: null,
    help: 'Where to listen. Another than a loopback address needs SAGITTA_INSECURE=yes, since there are no credentials.',
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
  insecure: {
    schema: z.enum(['yes', 'no']).transform((answer) => answer === 'yes'),
    expected: 'yes or no',
    default: false,
    unit: null,
    help: 'Serve on another than a loopback address without credentials: everybody who reaches it may do everything.',
  },
} as const satisfies Record<Exclude<keyof Config, 'limits'>, Setting>;

const bound = (unit: string, min: number, max: number, help: string) => ({ unit, min, max, help });

/** Ids are at most so long wherever they are stored; fewer may be allowed. */
const VECTOR_ID_BYTES_MAX = DEFAULT_LIMITS.vectorIdBytesMax;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What may be asked of the bounds in `limits.ts`, which has the reasons. */
const BOUNDS = {
  dimensionMax: bound('elements', 1, 16_384, 'The longest vector.'),
  bodyBytesMax: bound('bytes', 1_024, 512_000_000, 'The largest JSON body.'),
  batchRowsMax: bound('vectors', 1, 100_000, 'Vectors in one JSON body.'),
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
  idempotencyKeyCharactersMax: bound('characters', 1, 1_024, 'The longest idempotency key.'),
  descriptionCharactersMax: bound('characters', 0, 100_000, 'The longest description.'),
  labelsMax: bound('labels', 0, 1_024, 'Labels of a collection.'),
  labelCharactersMax: bound('characters', 1, 4_096, 'The longest name or text of a label.'),
} as const satisfies Record<keyof Limits, ReturnType<typeof bound>>;

const ALL_SETTINGS: ReadonlyMap<string, Setting> = new Map([
  ...Object.entries<Setting>(SETTINGS),
  ...Object.entries(BOUNDS).map(([name, { min, max, unit, help }]): [string, Setting] => [
    name,
    { ...integer(min, max), unit, help, default: DEFAULT_LIMITS[name as keyof Limits] },
  ]),
]);

const nameByVariable = new Map([...ALL_SETTINGS.keys()].map((name) => [variableOf(name), name]));

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** From the command line, by the names of the settings; they win over the environment. */
  readonly overrides?: Readonly<Record<string, string | undefined>>;
}

/** Throws `configuration_invalid`, which names the setting, what was found and what is expected. */
export function loadConfig({ env, overrides = {} }: ConfigSources): Config {
  refuseUnknownNames(env, overrides);
  const values: Record<string, unknown> = {};
  for (const [name, setting] of ALL_SETTINGS) {
    const override = overrides[name];
    const found = override ?? env[variableOf(name)];
    values[name] =
      found === undefined
        ? setting.default
        : readSetting(setting, found, override === undefined ? variableOf(name) : optionOf(name));
  }
  const limits = Object.fromEntries(Object.keys(BOUNDS).map((name) => [name, values[name]]));
  const others = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, values[name]]));
  const config = { ...others, limits } as unknown as Config;
  refuseContradictions(config);
  return config;
}

/** Every setting, in the order in which they are best read. */
export function describeSettings(): SettingDescription[] {
  return [...ALL_SETTINGS].map(([name, setting]) => ({
    variable: variableOf(name),
    option: optionOf(name),
    name,
    unit: setting.unit,
    default: describeDefault(setting.default),
    expected: setting.expected,
    help: setting.help,
  }));
}

/** `dataDir` → `SAGITTA_DATA_DIR`. */
function variableOf(name: string): string {
  return PREFIX + name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** `dataDir` → `--data-dir`. */
function optionOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function describeDefault(value: unknown): string {
  if (value === null) return '';
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

function readSetting(setting: Setting, found: string, place: string): unknown {
  const result = setting.schema.safeParse(found);
  if (result.success) return result.data;
  throw invalid(`${place} is ${JSON.stringify(found)}; expected ${setting.expected}.`);
}

/** A name that nobody reads is a typo, and the setting that was meant keeps its default. */
function refuseUnknownNames(
  env: ConfigSources['env'],
  overrides: NonNullable<ConfigSources['overrides']>,
): void {
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX) || variable.startsWith(TEST_PREFIX)) continue;
    if (!nameByVariable.has(variable)) {
      throw invalid(`${variable} is set, but there is no such setting; see sagitta serve --help.`);
    }
  }
  for (const name of Object.keys(overrides)) {
    if (!ALL_SETTINGS.has(name)) throw invalid(`There is no option ${optionOf(name)}.`);
  }
}

function refuseContradictions({ host, insecure, limits }: Config): void {
  if (!insecure && !isLoopback(host)) {
    throw invalid(
      `${variableOf('host')} is ${JSON.stringify(host)}; expected a loopback address, since without credentials everybody who reaches another one may do everything. ${variableOf('insecure')}=yes allows it.`,
    );
  }
  for (const [smaller, larger] of [
    ['pageLimitDefault', 'pageLimitMax'],
    ['topKDefault', 'topKMax'],
  ] as const) {
    if (limits[smaller] > limits[larger]) {
      throw invalid(
        `${variableOf(smaller)} is ${limits[smaller]}; expected at most ${variableOf(larger)}, which is ${limits[larger]}.`,
      );
    }
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}

const invalid = (detail: string) => new SagittaError('configuration_invalid', detail);
