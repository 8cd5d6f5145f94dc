// Loads the configuration; nothing else reads the environment. The command line takes precedence over the environment,
// and the environment over the defaults. `settings.ts` is the table of settings.

import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { SagittaError } from '../common/errors.js';
import { LIMITS, type Limits } from '../common/limits.js';
import { nearestName } from '../common/unknown-name.js';
import { memoryOfProcess } from './memory-limit.js';
import { isServiceVariable } from './service-variables.js';
import {
  ALL_SETTINGS,
  type BlobStoreSettings,
  BUILTIN,
  type Config,
  type EmbeddingEndpoint,
  SETTING_NAMES,
} from './settings.js';

export {
  BUILTIN,
  type Config,
  EMBEDDING_NAME,
  type EmbeddingEndpoint,
  ENGINE_CHOICES,
} from './settings.js';

/** A setting as described by the help text and docs/configuration.md. */
export interface SettingDescription {
  /** The environment variable. */
  readonly variable: string;
  /** The command line option. */
  readonly option: string;
  /** The key in `ConfigSources.overrides`. */
  readonly name: string;
  readonly unit: string | null;
  /** The default as text; empty if there is none. */
  readonly default: string;
  /** The accepted values, in words. */
  readonly expected: string;
  readonly help: string;
  /** The variable that names a file with the value, for secrets, which have no option; null for other settings. */
  readonly fileVariable: string | null;
}

const PREFIX = 'SAGITTA_';
/** Prefix of variables that only the tests read. */
const TEST_PREFIX = 'SAGITTA_TEST_';
/** Suffix of the variable that names a file with a secret. */
const FILE_SUFFIX = '_FILE';

const KNOWN_VARIABLES = new Set(
  [...ALL_SETTINGS].flatMap(([name, { isSecret }]) => {
    const variable = variableOf(name);
    return isSecret === true ? [variable, variable + FILE_SUFFIX] : [variable];
  }),
);

/**
 * Share of the memory that caps each limit unless it is set. The rest is for stored data, garbage on the heap, and
 * batches in the engine.
 */
const MEMORY_SHARES: Partial<Record<keyof Limits, number>> = {
  bodyBytesMax: 1 / 16,
  bodyBytesInFlightMax: 1 / 16,
  replyBytesInFlightMax: 1 / 8,
  filterCacheBytesMax: 1 / 32,
};

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Values from the command line, by setting name; they take precedence over the environment. */
  readonly overrides?: Readonly<Record<string, string | undefined>>;
  /** The memory that the process may use if `memory` is not set; by default what the system reports. */
  readonly memoryBytes?: number;
}

/** A problem with the settings of these names; none for a variable that is not a setting. */
interface Problem {
  readonly names: readonly string[];
  readonly detail: string;
}

type Environment = ConfigSources['env'];
type Overrides = NonNullable<ConfigSources['overrides']>;

/** Throws `configuration_invalid`, which lists every wrong setting with the values found and expected. */
export function loadConfig({
  env: found,
  overrides = {},
  memoryBytes = memoryOfProcess(),
}: ConfigSources): Config {
  const ignoredVariables = Object.entries(found)
    .filter(([name, value]) => name.startsWith(PREFIX) && isServiceVariable(name, value ?? ''))
    .map(([name]) => name);
  const env = Object.fromEntries(
    Object.entries(found).filter(([name]) => !ignoredVariables.includes(name)),
  );
  const problems = findUnknownNames(env, overrides);
  const values = readSettings(env, overrides, problems);
  values.cluster = readNatsServers(values, problems);
  const memory = (values.memory as number | null) ?? memoryBytes;
  const limits = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, values[name]]));
  for (const [name, share] of Object.entries(MEMORY_SHARES)) {
    const isSet = overrides[name] !== undefined || env[variableOf(name)] !== undefined;
    if (!isSet) limits[name] = Math.min(values[name] as number, Math.floor(memory * share));
  }
  const others = Object.fromEntries(SETTING_NAMES.map((name) => [name, values[name]]));
  const config = {
    ...others,
    memory,
    isConsoleServed: (others as unknown as Config).console === 'on',
    tracesUrl: readTracesUrl(env, problems),
    serviceManager: readServiceManager(env),
    embedding: readEmbedding(others as unknown as Config, env, problems),
    blobStore: readBlobStore(others as unknown as Config, env, problems),
    ignoredVariables,
    limits,
  } as unknown as Config;
  // Unreadable settings are compared by their defaults, so contradictions that involve them are ignored.
  const unread = new Set(problems.flatMap(({ names }) => names));
  const isRead = ({ names }: Problem) => !names.some((name) => unread.has(name));
  problems.push(...findContradictions(config).filter(isRead));
  if (problems.length > 0) throw invalid(problems.map(({ detail }) => detail));
  return config;
}

export type NatsConfig = Pick<Config, (typeof NATS_NAMES)[number]>;

/** For programs that are not nodes: reads only these settings. Throws `configuration_invalid`. */
export function loadNatsConfig(env: Environment): NatsConfig {
  const found: Problem[] = [];
  const values = readSettings(env, {}, found);
  values.cluster = readNatsServers(values, found);
  found.push(...findContradictions({ ...values, limits: values } as unknown as Config));
  const names: readonly string[] = NATS_NAMES;
  const problems = found.filter((problem) => problem.names.every((name) => names.includes(name)));
  if (problems.length > 0) throw invalid(problems.map(({ detail }) => detail));
  return Object.fromEntries(names.map((name) => [name, values[name]])) as unknown as NatsConfig;
}

/** All settings in the order of the documentation. */
export function describeSettings(): SettingDescription[] {
  return [...ALL_SETTINGS].map(([name, setting]) => ({
    variable: variableOf(name),
    option: optionOf(name),
    name,
    unit: setting.unit ?? null,
    default: describeDefault(setting.default ?? null),
    expected: setting.expected,
    help: setting.help,
    fileVariable: setting.isSecret === true ? variableOf(name) + FILE_SUFFIX : null,
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
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

/** Returns the values by name. A wrong value is added to `problems` and replaced by the default. */
function readSettings(
  env: Environment,
  overrides: Overrides,
  problems: Problem[],
): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of ALL_SETTINGS) {
    const override = overrides[name];
    values[name] = setting.default ?? null;
    const refuse = (detail: string) => problems.push({ names: [name], detail });
    const found = override ?? readVariable(name, env, refuse);
    if (found === undefined) continue;
    const result = setting.schema().safeParse(found);
    if (result.success) {
      values[name] = result.data;
    } else {
      const place = override === undefined ? variableOf(name) : optionOf(name);
      const value =
        setting.isSecret === true ? describeSecret(found) : JSON.stringify(withoutPasswords(found));
      refuse(`${place} is ${value}; expected ${setting.expected}.`);
    }
  }
  return values;
}

/** The value of the variable or, for a secret, the content of the file that another variable names. */
function readVariable(
  name: string,
  env: Environment,
  refuse: (detail: string) => void,
): string | undefined {
  const variable = variableOf(name);
  const value = env[variable];
  const path = ALL_SETTINGS.get(name)?.isSecret === true ? env[variable + FILE_SUFFIX] : undefined;
  if (path === undefined) return value;
  if (value !== undefined) {
    refuse(`${variable} and ${variable + FILE_SUFFIX} are both set; expected one of them.`);
    return undefined;
  }
  const file = `${variable + FILE_SUFFIX} is ${JSON.stringify(path)}, which`;
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    refuse(`${file} cannot be read: ${(error as Error).message}.`);
    return undefined;
  }
  // Decoding invalid UTF-8 would yield a repeated replacement character.
  const text = isUtf8(bytes) ? bytes.toString().trim() : undefined;
  if (text === undefined) refuse(`${file} is not text in UTF-8.`);
  else if (text === '') refuse(`${file} is empty.`);
  return text === '' ? undefined : text;
}

function describeSecret(text: string): string {
  return text === '' ? 'empty' : 'a value that is not shown';
}

/** Removes passwords for messages. A password may contain any character, even those that separate URLs. */
function withoutPasswords(text: string): string {
  return text.replace(/^((?:[\w-]+=)?(?:\w+:\/\/)?).*@/s, '$1***@');
}

/**
 * Returns the URLs of the NATS servers and moves their users and passwords into separate settings. Messages contain no
 * passwords.
 */
function readNatsServers(
  values: Record<string, unknown>,
  problems: Problem[],
): readonly string[] | null {
  const cluster = values.cluster as readonly string[] | null;
  if (cluster === null) return null;
  const variable = variableOf('cluster');
  const refuse = (detail: string) => problems.push({ names: ['cluster'], detail });
  const logins = new Set<string>();
  const urls = cluster.map((found) => {
    const [, scheme, login, host] = /^(\w+:\/\/)(?:(.*)@)?([^@/?#]+)\/?$/.exec(found) ?? [];
    if (host === undefined || !URL.canParse(`${scheme}${host}`)) {
      // A URL without a host ends with the password.
      const shown = withoutPasswords(found).replace(/^(\w+:\/\/[^:@]*:).*[^\d/].*$/, '$1***');
      refuse(`${variable} has ${JSON.stringify(shown)}; expected nats://host:4222.`);
      return found;
    }
    if (login !== undefined) logins.add(login);
    return `${scheme}${host}`;
  });
  const [login] = logins;
  if (login === undefined) return urls;
  const set = LOGIN_NAMES.filter((name) => values[name] !== null);
  if (logins.size > 1 || set.length > 0) {
    const other = set.length === 0 ? 'another URL' : set.map(variableOf).join(' and ');
    refuse(`${variable} and ${other} contain different credentials; expected those of one user.`);
    return urls;
  }
  try {
    const [user = '', ...rest] = login.split(':');
    const [first, password] = [user, rest.join(':')].map(decodeURIComponent);
    if (rest.length === 0) values.clusterToken = first;
    else Object.assign(values, { clusterUser: first, clusterPassword: password });
  } catch {
    refuse(
      `${variable} contains a user or a password with a % that does not begin an escape; write %25 instead.`,
    );
  }
  return urls;
}

/**
 * Settings with the credentials of a node for NATS. Only one may be set, except for the password, which belongs to the
 * user.
 */
const LOGIN_NAMES = [
  'clusterUser',
  'clusterPassword',
  'clusterToken',
  'clusterNkey',
  'clusterCredentials',
] as const;

/** The settings of connections to the NATS servers. */
const NATS_NAMES = [
  'cluster',
  ...LOGIN_NAMES,
  'clusterTlsCa',
  'clusterTlsCert',
  'clusterTlsKey',
] as const;

/**
 * The OTLP endpoint for traces as specified by OpenTelemetry: the endpoint for traces is used as it is, the common
 * endpoint gets the path `v1/traces`, and an empty value counts as absent.
 */
/** Systemd sets these variables for units of the type notify. */
function readServiceManager({
  NOTIFY_SOCKET,
  WATCHDOG_USEC,
}: Environment): Config['serviceManager'] {
  if ((NOTIFY_SOCKET ?? '') === '') return null;
  const watchdogMs = Number(WATCHDOG_USEC ?? 0) / 1000;
  return { watchdogMs: watchdogMs > 0 ? watchdogMs : null };
}

function readTracesUrl(env: Environment, problems: Problem[]): string | null {
  for (const [variable, path] of [
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ''],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'v1/traces'],
  ] as const) {
    const found = env[variable];
    if (found === undefined || found === '') continue;
    if (!/^https?:/i.test(found) || !URL.canParse(found)) {
      const detail = `${variable} is ${JSON.stringify(withoutPasswords(found))}; expected an http or https URL.`;
      problems.push({ names: [], detail });
      return null;
    }
    return path === '' || found.endsWith('/') ? found + path : `${found}/${path}`;
  }
  return null;
}

/** The embedding endpoints with their keys. Messages contain no URLs, because a URL may contain a password. */
function readEmbedding(
  { embeddingEndpoints, embeddingKeys }: Config,
  env: Environment,
  problems: Problem[],
): readonly EmbeddingEndpoint[] {
  const variables = new Map(embeddingKeys.map(splitAtEquals));
  const urls = new Map((embeddingEndpoints ?? []).map(splitAtEquals));
  const isRead = !problems.some(({ names }) => names.includes('embeddingEndpoints'));
  const refuse = (detail: string) => problems.push({ names: [], detail });
  for (const [name, variable] of variables) {
    if (isRead && !urls.has(name)) {
      refuse(
        `${variableOf('embeddingKeys')} has a key for "${name}", which is not in ${variableOf('embeddingEndpoints')}.`,
      );
    } else if (env[variable] === undefined || env[variable] === '') {
      refuse(
        `${variableOf('embeddingKeys')} names the variable ${variable} for "${name}", which is not set.`,
      );
    }
  }
  if (urls.size < (embeddingEndpoints?.length ?? 0)) {
    refuse(`${variableOf('embeddingEndpoints')} has the same name twice.`);
  }
  if (urls.has(BUILTIN)) {
    refuse(
      `${variableOf('embeddingEndpoints')} has an endpoint "${BUILTIN}", which is the name of the built-in model.`,
    );
  }
  for (const [name, url] of urls) {
    if (URL.canParse(url)) continue;
    refuse(`${variableOf('embeddingEndpoints')} has no valid URL for "${name}".`);
  }
  return [...urls].map(([name, url]) => {
    const variable = variables.get(name);
    return { name, url, key: variable === undefined ? null : (env[variable] ?? null) };
  });
}

/** Messages contain no keys. */
function readBlobStore(
  { blobs }: Config,
  env: Environment,
  problems: Problem[],
): BlobStoreSettings | null {
  if (blobs === null) return null;
  if (!blobs.startsWith('s3:')) return { kind: 'folder', folder: blobs };
  const refuse = (detail: string) => problems.push({ names: ['blobs'], detail });
  const found = `${variableOf('blobs')} is ${JSON.stringify(withoutPasswords(blobs))}`;
  const url = URL.canParse(blobs) ? new URL(blobs) : null;
  if (url === null || url.hostname === '') {
    refuse(`${found}; expected s3://bucket/prefix.`);
    return null;
  }
  const region = url.searchParams.get('region') ?? env.AWS_REGION ?? 'us-east-1';
  const endpoint = url.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`;
  if (!/^https?:/.test(endpoint) || !URL.canParse(endpoint)) {
    refuse(`${found}; expected an http or https URL as its endpoint.`);
  }
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) {
    refuse(`${found}, but AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set.`);
    return null;
  }
  const prefix = url.pathname.slice(1).replace(/([^/])$/, '$1/');
  const { AWS_SESSION_TOKEN: sessionToken } = env;
  const session = sessionToken ? { sessionToken } : {};
  const keys = { accessKeyId, secretAccessKey, ...session };
  return { kind: 's3', endpoint, bucket: url.hostname, prefix, region, ...keys };
}

function splitAtEquals(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Unknown names are rejected, because a typo would silently leave the intended setting at its default. */
function findUnknownNames(env: Environment, overrides: Overrides): Problem[] {
  const variables = Object.keys(env)
    .filter((variable) => variable.startsWith(PREFIX) && !variable.startsWith(TEST_PREFIX))
    .filter((variable) => !KNOWN_VARIABLES.has(variable))
    .map((variable) => `${variable} is not a known setting; ${suggestionFor(variable)}`);
  const options = Object.keys(overrides)
    .filter((name) => !ALL_SETTINGS.has(name))
    .map((name) => `${optionOf(name)} is not a known option.`);
  return [...variables, ...options].map((detail) => ({ names: [], detail }));
}

function suggestionFor(variable: string): string {
  // The common prefix is ignored, so that only similar names match.
  const known = [...KNOWN_VARIABLES].map((each) => each.slice(PREFIX.length));
  const nearest = nearestName(variable.slice(PREFIX.length), known);
  return nearest === undefined
    ? 'see sagitta serve --help.'
    : `did you mean ${PREFIX}${nearest}? See sagitta serve --help.`;
}

function findContradictions(config: Config): Problem[] {
  const { host, insecure, limits } = config;
  const problems = [
    ...checkSetTogether(config, ['tlsCert', 'tlsKey']),
    ...checkSetTogether(config, ['tlsClientCa', 'tlsPrincipals']),
    ...checkSetTogether(config, ['jwks', 'jwtIssuer', 'jwtAudience']),
    ...checkSetTogether(config, ['cluster', 'blobs']),
    ...(config.cluster === null ? checkSetTogether(config, ['clusterMonitors', 'cluster']) : []),
    ...checkSetTogether(config, ['clusterUser', 'clusterPassword']),
    ...checkSetTogether(config, ['clusterTlsCert', 'clusterTlsKey']),
    ...checkClusterSecret(config),
  ];
  const logins = LOGIN_NAMES.filter((name) => name !== 'clusterPassword' && config[name] !== null);
  if (logins.length > 1) {
    problems.push({
      names: logins,
      detail: `${logins.map(variableOf).join(' and ')} are set; expected only one of them, since a node is one user of NATS.`,
    });
  }
  if (config.tlsClientCa !== null && config.tlsCert === null) {
    problems.push({
      names: ['tlsClientCa', 'tlsCert', 'tlsKey'],
      detail: `${variableOf('tlsClientCa')} requires ${variableOf('tlsCert')} and ${variableOf('tlsKey')}: client certificates need TLS.`,
    });
  }
  const isPrivate =
    config.tlsCert !== null || config.tlsKey !== null || config.trustedProxies.length > 0;
  if (!insecure && !isPrivate && !isLoopback(host)) {
    problems.push({
      names: ['host', 'insecure', 'tlsCert', 'tlsKey', 'trustedProxies'],
      detail: `${variableOf('host')} is ${JSON.stringify(host)}; without TLS, expected a loopback address, since anyone on the network could read the traffic. Set ${variableOf('tlsCert')} and ${variableOf('tlsKey')}, or ${variableOf('trustedProxies')} if a proxy terminates TLS; ${variableOf('insecure')}=yes allows clear text.`,
    });
  }
  for (const [smaller, larger] of [
    ['pageLimitDefault', 'pageLimitMax'],
    ['topKDefault', 'topKMax'],
  ] as const) {
    if (limits[smaller] <= limits[larger]) continue;
    problems.push({
      names: [smaller, larger],
      detail: `${variableOf(smaller)} is ${limits[smaller]}; expected at most ${variableOf(larger)}, which is ${limits[larger]}.`,
    });
  }
  return problems;
}

/** Reports a cluster whose nodes share no secret although other machines could impersonate a node. */
function checkClusterSecret({ cluster, clusterSecret, clusterUrl, host }: Config): Problem[] {
  if (cluster === null || clusterSecret !== null) return [];
  const reached = [
    ...cluster.map((url) => ['cluster', url] as const),
    ...(clusterUrl === null ? [] : [['clusterUrl', clusterUrl] as const]),
  ];
  const outside =
    reached.find(([, url]) => !isLoopbackUrl(url)) ??
    (isLoopback(host) ? undefined : (['host', host] as const));
  if (outside === undefined) return [];
  const [name, found] = outside;
  const secret = variableOf('clusterSecret');
  const detail = `${variableOf(name)} is ${JSON.stringify(found)}, which is not on loopback, and the nodes share no secret: anyone who can reach NATS or a node could act in their name. Give all nodes the same ${secret}, or name a file that contains it in ${secret}${FILE_SUFFIX}; openssl rand -base64 32 generates one.`;
  return [{ names: [name, 'clusterSecret'], detail }];
}

/** Reports settings that must be set together if only some of them are. */
function checkSetTogether(config: Config, names: readonly (keyof Config)[]): Problem[] {
  const missing = names.filter((name) => config[name] === null);
  if (missing.length === 0 || missing.length === names.length) return [];
  const set = names.filter((name) => config[name] !== null);
  const detail = `${set.map(variableOf).join(' and ')} requires ${missing.map(variableOf).join(' and ')} to be set as well.`;
  return [{ names, detail }];
}

/** Whether the address is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}

/** Whether a URL names this machine only. */
export function isLoopbackUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { hostname } = new URL(url);
  return isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}

function invalid(details: readonly string[]): SagittaError {
  const text =
    details.length === 1
      ? details[0]!
      : `There are ${details.length} problems with the settings:\n  ${details.join('\n  ')}`;
  return new SagittaError('configuration_invalid', text);
}
