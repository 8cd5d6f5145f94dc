// The configuration: the only reader of the environment. A setting comes from the command line, else
// from the environment, else it has its default; `settings.ts` is the table of them.

import { SagittaError } from '../common/errors.js';
import { ALL_SETTINGS, BOUND_NAMES, type Config, SETTING_NAMES, type Setting } from './settings.js';

export { type Config, ENGINE_CHOICES, LOG_LEVELS, SIMD_CHOICES } from './settings.js';

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

const PREFIX = 'SAGITTA_';
/** Read by the tests only. */
const TEST_PREFIX = 'SAGITTA_TEST_';

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
  const limits = Object.fromEntries(BOUND_NAMES.map((name) => [name, values[name]]));
  const others = Object.fromEntries(SETTING_NAMES.map((name) => [name, values[name]]));
  const config = { ...others, tracesUrl: readTracesUrl(env), limits } as unknown as Config;
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
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

function readSetting(setting: Setting, found: string, place: string): unknown {
  const result = setting.schema.safeParse(found);
  if (result.success) return result.data;
  throw invalid(`${place} is ${JSON.stringify(found)}; expected ${setting.expected}.`);
}

/** As OpenTelemetry says: an endpoint of its own as it is, the common one with a path; empty is absent. */
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

function refuseContradictions(config: Config): void {
  const { host, insecure, limits } = config;
  requireTogether(config, ['tlsCert', 'tlsKey']);
  requireTogether(config, ['tlsClientCa', 'tlsPrincipals']);
  requireTogether(config, ['jwks', 'jwtIssuer', 'jwtAudience']);
  if (config.tlsClientCa !== null && config.tlsCert === null) {
    throw invalid(
      `${variableOf('tlsClientCa')} is set; expected ${variableOf('tlsCert')} and ${variableOf('tlsKey')} too, since clients show certificates to a server that has one.`,
    );
  }
  const isPrivate = config.tlsCert !== null || config.trustedProxies.length > 0;
  if (!insecure && !isPrivate && !isLoopback(host)) {
    throw invalid(
      `${variableOf('host')} is ${JSON.stringify(host)}; expected a loopback address, since clear text is for everybody on the network to read. Set ${variableOf('tlsCert')} and ${variableOf('tlsKey')}, or ${variableOf('trustedProxies')} where a gateway ends TLS; ${variableOf('insecure')}=yes allows clear text.`,
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
    `${set.map(variableOf).join(' and ')} is set; expected ${missing.map(variableOf).join(' and ')} too.`,
  );
}

/** Whether only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);
}

const invalid = (detail: string) => new SagittaError('configuration_invalid', detail);
