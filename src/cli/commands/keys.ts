// `sagitta keys`: creates, lists, shows, rotates and revokes API keys, in a data directory (through the server that
// runs on it, or offline) or, with --url, over the network. A new key is the only text on stdout, so that a shell can
// capture it; everything else goes to stderr.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiKeyInput, ApiKeyRecord, ApiKeyWithSecret, Keys } from '@sagitta/client';
import type { Command } from 'commander';
import { administrationEndsAtMs, hasAdminScope } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import { printable } from '../../common/printable.js';
import { addConnectionOptions, connect, type ReplyOptions } from '../service/connection.js';
import { type ControlClient, connectControlClient } from '../service/control-client.js';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
  requireDataDirectory,
} from '../service/data-directory.js';
import { ask, isInteractive } from '../terminal/confirmation.js';
import { CliError, usageError } from '../terminal/failure.js';
import { parseDuration, parseExpiry } from '../terminal/option-values.js';
import { addJsonOption, print, write } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';

const EXAMPLES = `
Examples:
  $ sagitta keys create --owner ops --scope admin
  $ KEY=$(sagitta keys create --owner site --expires 90d \\
      --scope 'vectors:read:catalog-*')
  $ sagitta keys create --owner 'web app' --scope vectors:read:catalog \\
      --origin https://app.example.org --rate 20 --burst 100
  $ sagitta keys list
  $ sagitta keys rotate 3kTMd9xQ7bZr2LfW --grace 1h
  $ sagitta keys revoke 3kTMd9xQ7bZr2LfW --api-key $ADMIN \\
      --url https://vectors.example.org

Without --url the command works on the data directory: through the server that
runs on it, which requires no key from a user who may write to the directory, or
offline. This also works when every key is lost.

Once the first key exists, every request to the service needs a credential. On a
terminal the command asks before it creates the first key, unless --yes is
given. Give that key the scope admin, which managing keys over the network
requires.`;

const ID_HELP = 'key id: the part of the key between the underscores';

type CommonOptions = ReplyOptions & DataDirectoryOptions;

interface CreateOptions extends CommonOptions {
  readonly owner: string;
  readonly scope: readonly string[];
  readonly expires?: string;
  readonly origin?: readonly string[];
  readonly rate?: number;
  readonly burst?: number;
  readonly yes?: boolean;
}

export function defineKeys(command: Command): void {
  command.addHelpText('after', EXAMPLES);

  const create = command
    .command('create')
    .description('create a key and print it once')
    .requiredOption('--owner <name>', 'free-text owner of the key')
    .requiredOption(
      '--scope <scope>',
      'permission: vectors:read, vectors:write:catalog-*, admin, …; may be repeated',
      collect,
    )
    .option(
      '--expires <when>',
      'expiry: a duration such as 90d or 12h, or an ISO 8601 time (default: never)',
    )
    .option(
      '--origin <origin>',
      'origin of the only web pages that may use the key, such as https://app.example.org; may be repeated',
      collect,
    )
    .option(
      '--rate <per second>',
      'reads per second and writes per second of all clients with the key (default: the limits of the service)',
      parseRate('--rate'),
    )
    .option(
      '--burst <count>',
      'reads and writes at once (default: those of one second)',
      parseRate('--burst'),
    )
    .option('--yes', 'create the first key without confirmation');
  addCommonOptions(create).action(createKey);

  const list = command
    .command('list')
    .description('list all keys in order of creation, without secrets');
  addCommonOptions(list).action(async (options: CommonOptions) => {
    printList(await withKeys(options, false, (keys) => keys.list()), options);
  });

  const show = command.command('show').description('show one key').argument('<id>', ID_HELP);
  addCommonOptions(show).action(async (given: string, options: CommonOptions) => {
    printKey(await withKeys(options, false, (keys) => keys.get(idOf(given))), options);
  });

  const rotate = command
    .command('rotate')
    .description('replace the secret of a key and print the new key once')
    .argument('<id>', ID_HELP)
    .option('--grace <duration>', 'how long the old secret stays valid, such as 1h', '0s');
  addCommonOptions(rotate).action(
    async (given: string, options: CommonOptions & { readonly grace: string }) => {
      const grace_seconds = parseDuration('--grace', options.grace) / 1000;
      const key = await withKeys(options, false, (keys) =>
        keys.rotate(idOf(given), { grace_seconds }),
      );
      warn(`The old secret ${validityOf(key, grace_seconds)}.`);
      printSecret(key, options);
    },
  );

  const revoke = command
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<id>', ID_HELP);
  addCommonOptions(revoke).action(async (given: string, options: CommonOptions) => {
    await withKeys(options, false, async (keys) => {
      const records = await keys.list();
      const record = await keys.revoke(idOf(given));
      if (hasAdminScope(record.scopes)) {
        warnOfLockOut(records.map((each) => (each.id === record.id ? record : each)));
      }
      print(record, options, () => `Revoked key ${record.id} (owner: ${printable(record.owner)}).`);
    });
  });
}

async function createKey(options: CreateOptions): Promise<void> {
  const { scope: scopes } = options;
  const input = keyInputOf(options);
  await withKeys(options, true, async (keys) => {
    const others = await keys.list();
    const isFirst = others.length === 0;
    if (isFirst && options.yes !== true && isInteractive()) await confirmFirst();
    const key = await keys.create(input);
    if (isFirst) warn('This is the first key: from now on every request needs a credential.');
    if (isFirst || hasAdminScope(scopes)) warnOfLockOut([...others, key]);
    printSecret(key, options);
  });
}

/** Throws CliError unless the user agrees. */
async function confirmFirst(): Promise<void> {
  const answer = await ask(
    'This is the first key: once it exists, requests without a credential are refused, including\n' +
      'those of running programs and of the console. Create it? [y/N] ',
  );
  if (/^y(es)?$/i.test(answer)) return;
  throw new CliError('no key was created; --yes creates the first one without this question');
}

function collect(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}

/** A parser for numbers, whose range the service checks. */
function parseRate(option: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,10}(\.\d{1,6})?$/.test(text)) return Number(text);
    throw usageError(`${option}: expected a number such as 20, found "${text}"`);
  };
}

function keyInputOf({ owner, scope, expires, origin, rate, burst }: CreateOptions): ApiKeyInput {
  if (burst !== undefined && rate === undefined) throw usageError('--burst requires --rate');
  return {
    owner,
    scopes: scope,
    expires_at: expires === undefined ? null : parseExpiry('--expires', expires, Date.now()),
    allowed_origins: origin ?? null,
    rate_limit:
      rate === undefined ? null : { per_second: rate, ...(burst === undefined ? {} : { burst }) },
  };
}

/** The id of a key, which may be given as the whole key; the secret is not sent anywhere. */
function idOf(given: string): string {
  return /^sk_([0-9A-Za-z]+)_/.exec(given)?.[1] ?? given;
}

function addCommonOptions(command: Command): Command {
  return addJsonOption(
    addConnectionOptions(
      addDataDirectoryOption(command),
      'server address, instead of a data directory',
    ),
  ).addHelpText('after', '\n--url works on a server over the network; it requires --api-key.');
}

/** Runs `work` on the keys that the options name. `mayCreate` permits creating a missing data directory. */
async function withKeys<Result>(
  options: CommonOptions,
  mayCreate: boolean,
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  const { url, apiKey, dataDir } = options;
  if (url !== undefined) {
    if (dataDir !== undefined) throw usageError('--url and --data-dir are mutually exclusive');
    return work(connect(options).keys);
  }
  if (apiKey !== undefined) {
    throw usageError('--api-key requires --url; a data directory needs no key');
  }
  return keysOfDirectory(dataDirectoryOf(options), { mayCreate }, work);
}

/** Warns if no key can manage the service over the network, now or from some time on. */
function warnOfLockOut(records: readonly ApiKeyRecord[]): void {
  const endsAtMs = administrationEndsAtMs(records, Date.now());
  if (endsAtMs === Number.POSITIVE_INFINITY) return;
  const since =
    endsAtMs === Number.NEGATIVE_INFINITY
      ? 'No valid key has the scope admin, so no key can manage the service over the network.'
      : `The last key with the scope admin expires ${new Date(endsAtMs).toISOString()}; from then on no key can manage the service over the network.`;
  warn(
    `${since} A user who may write to the data directory can always create one: sagitta keys create --owner me --scope admin`,
  );
}

function warn(text: string): void {
  process.stderr.write(`${text}\n`);
}

function printSecret(key: ApiKeyWithSecret, options: CommonOptions): void {
  if (options.json) {
    write(JSON.stringify(key, null, 2));
    return;
  }
  const expiry = key.expires_at === null ? 'never expires' : `expires ${key.expires_at}`;
  const details = [
    `owner: ${printable(key.owner)}`,
    `scopes: ${key.scopes.join(' ')}`,
    ...(key.allowed_origins === null ? [] : [`origins: ${key.allowed_origins.join(' ')}`]),
    ...(key.rate_limit === null ? [] : [`rate: ${rateText(key)}`]),
    expiry,
  ];
  warn(`Key ${key.id} (${details.join('; ')}). It is shown only once:`);
  write(key.key);
}

/** The validity of the secret that a rotation has replaced, as a predicate. */
function validityOf({ rotated_at, expires_at }: ApiKeyRecord, graceSeconds: number): string {
  if (graceSeconds === 0) return 'is no longer valid; --grace 1h would have kept it for an hour';
  const untilMs = Date.parse(rotated_at!) + graceSeconds * 1000;
  const endMs = expires_at === null ? untilMs : Math.min(untilMs, Date.parse(expires_at));
  return `stays valid until ${new Date(endMs).toISOString()}`;
}

function printList(records: readonly ApiKeyRecord[], options: CommonOptions): void {
  print({ keys: records }, options, () => {
    if (records.length === 0) return 'No keys.';
    const titles = ['id', 'owner', 'state', 'scopes', 'origins', 'rate', 'created', 'expires'];
    const rows = records.map((record) => [
      record.id,
      record.owner,
      stateOf(record),
      record.scopes.join(' '),
      record.allowed_origins?.join(' ') ?? 'any',
      rateText(record),
      record.created_at,
      record.expires_at ?? 'never',
    ]);
    const columns = titles.map((title) => ({ title, isWhole: title === 'id' }));
    return tableForStdout(columns, rows, 160);
  });
}

function printKey(record: ApiKeyRecord, options: CommonOptions): void {
  print(record, options, () => {
    const members = {
      ...record,
      scopes: record.scopes.join(' '),
      allowed_origins: record.allowed_origins?.join(' ') ?? 'any',
      rate_limit: rateText(record),
      state: stateOf(record),
    };
    return Object.entries(members)
      .map(([name, value]) => `${name.padEnd(16)}${printable(value ?? 'never')}`)
      .join('\n');
  });
}

function rateText({ rate_limit: limit }: ApiKeyRecord): string {
  return limit === null ? 'default' : `${limit.per_second}/s burst ${limit.burst}`;
}

function stateOf({ revoked_at, expires_at }: ApiKeyRecord): string {
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? 'expired' : 'valid';
}

/**
 * Longest wait for a locked directory: another command holds it only briefly, and a starting server soon listens on its
 * control socket.
 */
const LOCKED_MS_MAX = 10_000;
const RETRY_INTERVAL_MS = 100;

/** Runs `work` on the keys of a data directory, through its server if one runs, otherwise offline. */
async function keysOfDirectory<Result>(
  directory: string,
  options: { mayCreate: boolean },
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  const startedAt = performance.now();
  while (true) {
    const socket = await connectControlClient(directory);
    if (socket !== null) {
      return work(keysThrough(socket)).finally(() => socket.close());
    }
    if (!options.mayCreate) requireDataDirectory(directory);
    const isNew = !existsSync(directory);
    try {
      const result = await workOffline(directory, work);
      if (isNew) warn(`Created the data directory ${resolve(directory)}.`);
      return result;
    } catch (error) {
      const isLocked = error instanceof SagittaError && error.code === 'data_directory_locked';
      if (!isLocked || performance.now() - startedAt > LOCKED_MS_MAX) throw error;
      await sleep(RETRY_INTERVAL_MS);
    }
  }
}

function keysThrough(socket: ControlClient): Keys {
  const at = (id: string) => `/keys/${encodeURIComponent(id)}`;
  return {
    create: (input) => socket.call('POST', '/keys', input),
    list: async () => (await socket.call<{ keys: ApiKeyRecord[] }>('GET', '/keys')).keys,
    get: (id) => socket.call('GET', at(id)),
    rotate: (id, request = {}) => socket.call('POST', `${at(id)}/rotate`, request),
    revoke: (id) => socket.call('DELETE', at(id)),
  };
}

async function workOffline<Result>(
  directory: string,
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  // Loaded only here, since the code of the database is not needed when a server runs.
  const { apiKeyInput, apiKeyMembers, withApiKeys } = await import('../../offline.js');
  type NewKey = { record: Parameters<typeof apiKeyMembers>[0]; key: string };
  const withSecret = ({ record, key }: NewKey) => ({ ...apiKeyMembers(record), key });
  return withApiKeys(directory, (apiKeys) =>
    work({
      create: async (input) => withSecret(await apiKeys.create(apiKeyInput(input))),
      list: async () => apiKeys.list().map(apiKeyMembers),
      get: async (id) => apiKeyMembers(apiKeys.get(id)),
      rotate: async (id, { grace_seconds = 0 } = {}) =>
        withSecret(await apiKeys.rotate(id, { graceMs: grace_seconds * 1000 })),
      revoke: async (id) => apiKeyMembers(await apiKeys.revoke(id)),
    }),
  );
}
