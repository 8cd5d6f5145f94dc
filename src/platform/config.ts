// Loads the configuration; nothing else reads the environment. The command line takes precedence
// over the environment, and the environment over the defaults; `settings.ts` is the table.

import { SagittaError } from '../common/errors.js';
import {
  ALL_SETTINGS,
  BOUND_NAMES,
  type Config,
  type EmbeddingEndpoint,
  SETTING_NAMES,
  type Setting,
} from './settings.js';

export { type Config, EMBEDDING_NAME, type EmbeddingEndpoint, ENGINE_CHOICES } from './settings.js';

/** One setting in the help text and in docs/configuration.md. */
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
}

const PREFIX = 'SAGITTA_';
/** Variables that only the tests read. */
const TEST_PREFIX = 'SAGITTA_TEST_';

const nameByVariable = new Map([...ALL_SETTINGS.keys()].map((name) => [variableOf(name), name]));

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Values from the command line, by setting name; they take precedence over the environment. */
  readonly overrides?: Readonly<Record<string, string | undefined>>;
}

/** Throws `configuration_invalid`, which names the setting, the value found and the values expected. */
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
  const limits = Object.fromEntries(BOUND_NAMES.map((name) => [name, values[name]]));
  const others = Object.fromEntries(SETTING_NAMES.map((name) => [name, values[name]]));
  const config = {
    ...others,
    isConsoleServed: (others as unknown as Config).console === 'on',
    tracesUrl: readTracesUrl(env),
    embedding: readEmbedding(others as unknown as Config, env),
    limits,
  } as unknown as Config;
  refuseContradictions(config);
  return config;
}

/** Every setting, in the order of the documentation. */
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
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

function readSetting(setting: Setting, found: string, place: string): unknown {
  const result = setting.schema.safeParse(found);
  if (result.success) return result.data;
  throw invalid(`${place} is ${JSON.stringify(found)}; expected ${setting.expected}.`);
}

/**
 * The OTLP endpoint for traces, as OpenTelemetry specifies: the endpoint for traces is used as it is,
 * the common endpoint gets the path `v1/traces`, and an empty value counts as absent.
 */
function readTracesUrl(env: ConfigSources['env']): string | null {
  for (const [variable, path] of [
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ''],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'v1/traces'],
  ] as const) {
    const found = env[variable];
    if (found === undefined || found === '') continue;
    if (!/^https?:/i.test(found) || !URL.canParse(found)) {
      throw invalid(`${variable} is ${JSON.stringify(found)}; expected an http or https URL.`);
    }
    return path === '' || found.endsWith('/') ? found + path : `${found}/${path}`;
  }
  return null;
}

/** The embedding endpoints with their keys. Messages have no URL: it may contain a password. */
function readEmbedding(
  { embeddingEndpoints, embeddingKeys }: Config,
  env: ConfigSources['env'],
): readonly EmbeddingEndpoint[] {
  const variables = new Map(embeddingKeys.map(splitAtEquals));
  const urls = new Map((embeddingEndpoints ?? []).map(splitAtEquals));
  for (const [name, variable] of variables) {
    if (!urls.has(name)) {
      throw invalid(
        `${variableOf('embeddingKeys')} has a key for "${name}", which is not in ${variableOf('embeddingEndpoints')}.`,
      );
    }
    if (env[variable] === undefined || env[variable] === '') {
      throw invalid(
        `${variableOf('embeddingKeys')} names the variable ${variable} for "${name}", which is not set.`,
      );
    }
  }
  if (urls.size < (embeddingEndpoints?.length ?? 0)) {
    throw invalid(`${variableOf('embeddingEndpoints')} has the same name twice.`);
  }
  return [...urls].map(([name, url]) => {
    if (!URL.canParse(url)) {
      throw invalid(`${variableOf('embeddingEndpoints')} has no valid URL for "${name}".`);
    }
    const variable = variables.get(name);
    return { name, url, key: variable === undefined ? null : env[variable]! };
  });
}

function splitAtEquals(text: string): [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Rejects unknown names: a typo would leave the intended setting at its default without notice. */
function refuseUnknownNames(
  env: ConfigSources['env'],
  overrides: NonNullable<ConfigSources['overrides']>,
): void {
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX) || variable.startsWith(TEST_PREFIX)) continue;
    if (!nameByVariable.has(variable)) {
      throw invalid(`${variable} is not a known setting; see sagitta serve --help.`);
    }
  }
  for (const name of Object.keys(overrides)) {
    if (!ALL_SETTINGS.has(name)) throw invalid(`${optionOf(name)} is not a known option.`);
  }
}

function refuseContradictions(config: Config): void {
  const { host, insecure, limits } = config;
  requireTogether(config, ['tlsCert', 'tlsKey']);
  requireTogether(config, ['tlsClientCa', 'tlsPrincipals']);
  requireTogether(config, ['jwks', 'jwtIssuer', 'jwtAudience']);
  if (config.tlsClientCa !== null && config.tlsCert === null) {
    throw invalid(
      `${variableOf('tlsClientCa')} requires ${variableOf('tlsCert')} and ${variableOf('tlsKey')}: client certificates need TLS.`,
    );
  }
  const isPrivate = config.tlsCert !== null || config.trustedProxies.length > 0;
  if (!insecure && !isPrivate && !isLoopback(host)) {
    throw invalid(
      `${variableOf('host')} is ${JSON.stringify(host)}; without TLS, expected a loopback address, since anyone on the network could read the traffic. Set ${variableOf('tlsCert')} and ${variableOf('tlsKey')}, or ${variableOf('trustedProxies')} if a proxy terminates TLS; ${variableOf('insecure')}=yes allows clear text.`,
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

function requireTogether(config: Config, names: readonly (keyof Config)[]): void {
  const missing = names.filter((name) => config[name] === null);
  if (missing.length === 0 || missing.length === names.length) return;
  const set = names.filter((name) => config[name] !== null);
  throw invalid(
    `${set.map(variableOf).join(' and ')} requires ${missing.map(variableOf).join(' and ')} to be set as well.`,
  );
}

/** Whether the address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}

const invalid = (detail: string) => new SagittaError('configuration_invalid', detail);
