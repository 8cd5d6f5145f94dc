// `sagitta keys`: create, list, show, rotate, revoke. Works on a data directory, through the server
// that runs on it or without one, or with --url over the network. A key that was made is the only
// thing on stdout, so that a shell can take it; what is to be said of it goes to stderr.

import type { Command } from 'commander';
import type { ApiKeyRecord, ApiKeyWithSecret, Keys } from '../../client/client.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import {
  addDataDirectoryOption,
  type DataDirectoryOptions,
  dataDirectoryOf,
} from '../data-directory.js';
import { parseMoment, parseSpan } from '../durations.js';
import { usageError } from '../failure.js';
import { printable, renderTable } from '../table.js';
import { keysOfDirectory } from './keys-of-directory.js';

const EXAMPLES = `
Examples:
  $ sagitta keys create --owner ops --scope admin
  $ KEY=$(sagitta keys create --owner site --expires 90d \\
      --scope 'vectors:read:catalog-*')
  $ sagitta keys list
  $ sagitta keys rotate 3kTMd9xQ7bZr2LfW --grace 1h
  $ sagitta keys revoke 3kTMd9xQ7bZr2LfW --api-key $ADMIN \\
      --url https://vectors.example.org

Without --url the data directory is worked on: through the server that runs on
it, which asks for no key of who may write there, or without one.`;

const ID_HELP = 'the part of the key between the two _';

interface CommonOptions extends ConnectionOptions, DataDirectoryOptions {
  readonly json?: boolean;
}

interface CreateOptions extends CommonOptions {
  readonly owner: string;
  readonly scope: readonly string[];
  readonly expires?: string;
}

export function addKeysCommand(program: Command): void {
  const command = program
    .command('keys')
    .description('make, list, rotate and revoke API keys')
    .addHelpText('after', EXAMPLES);

  const create = command
    .command('create')
    .description('make a key and print it, this once')
    .requiredOption('--owner <name>', 'for whom it is, in words of yours')
    .requiredOption(
      '--scope <scope>',
      'what it may do: vectors:read, vectors:write:catalog-*, admin, …; may be repeated',
      (scope: string, scopes: readonly string[] = []) => [...scopes, scope],
    )
    .option('--expires <when>', 'a span such as 90d or 12h, or a time (ISO 8601); never else');
  addCommonOptions(create).action(async (options: CreateOptions) => {
    const { owner, scope: scopes, expires } = options;
    const expires_at = expires === undefined ? null : parseMoment('--expires', expires, Date.now());
    const input = { owner, scopes, expires_at };
    printSecret(await withKeys(options, true, (keys) => keys.create(input)), options);
  });

  const list = command
    .command('list')
    .description('all keys, without their secrets, in the order in which they were made');
  addCommonOptions(list).action(async (options: CommonOptions) => {
    printList(await withKeys(options, false, (keys) => keys.list()), options);
  });

  const show = command
    .command('show')
    .description('the record of one key')
    .argument('<id>', ID_HELP);
  addCommonOptions(show).action(async (given: string, options: CommonOptions) => {
    print(await withKeys(options, false, (keys) => keys.get(idOf(given))), options);
  });

  const rotate = command
    .command('rotate')
    .description('give a key a new secret and print it, this once')
    .argument('<id>', ID_HELP)
    .option('--grace <span>', 'how long the old secret goes on, such as 1h', '0s');
  addCommonOptions(rotate).action(
    async (given: string, options: CommonOptions & { readonly grace: string }) => {
      const grace_seconds = parseSpan('--grace', options.grace) / 1000;
      const made = await withKeys(options, false, (keys) =>
        keys.rotate(idOf(given), { grace_seconds }),
      );
      printSecret(made, options);
    },
  );

  const revoke = command
    .command('revoke')
    .description('refuse a key from now on, for good')
    .argument('<id>', ID_HELP);
  addCommonOptions(revoke).action(async (given: string, options: CommonOptions) => {
    const record = await withKeys(options, false, (keys) => keys.revoke(idOf(given)));
    if (options.json) writeJson(record);
    else write(`Revoked ${record.id} of ${printable(record.owner)}.`);
  });
}

/** Who has a key at hand need not cut it up, and its secret goes nowhere. */
function idOf(given: string): string {
  return /^sk_([0-9A-Za-z]+)_/.exec(given)?.[1] ?? given;
}

function addCommonOptions(command: Command): Command {
  return addConnectionOptions(
    addDataDirectoryOption(command),
    'a server over the network, in place of a data directory',
  )
    .option('--json', 'print one JSON object')
    .addHelpText('after', '\nWith --url the server is asked over the network, with --api-key.');
}

/** `isNew`: a directory that is not there yet is made. */
async function withKeys<Result>(
  options: CommonOptions,
  isNew: boolean,
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  const { url, apiKey, dataDir } = options;
  if (url !== undefined) {
    if (dataDir !== undefined) throw usageError('expected --url or --data-dir, found both');
    return work(connect(options).keys);
  }
  if (apiKey !== undefined) {
    throw usageError('--api-key is for a server that --url names; a data directory needs none');
  }
  return keysOfDirectory(dataDirectoryOf(options), { mayMake: isNew }, work);
}

function printSecret(made: ApiKeyWithSecret, options: CommonOptions): void {
  if (options.json) {
    writeJson(made);
    return;
  }
  const until = made.expires_at === null ? 'never expires' : `expires ${made.expires_at}`;
  process.stderr.write(
    `Key ${made.id} of ${printable(made.owner)} (${made.scopes.join(' ')}), ${until}. It is shown this once:\n`,
  );
  write(made.key);
}

function printList(records: readonly ApiKeyRecord[], options: CommonOptions): void {
  if (options.json) {
    writeJson({ keys: records });
    return;
  }
  if (records.length === 0) {
    write('No key.');
    return;
  }
  const titles = ['id', 'owner', 'state', 'scopes', 'created', 'expires'];
  const rows = records.map((record) => [
    record.id,
    record.owner,
    stateOf(record),
    record.scopes.join(' '),
    record.created_at,
    record.expires_at ?? 'never',
  ]);
  const columns = titles.map((title) => ({ title }));
  write(renderTable(columns, rows, process.stdout.columns ?? 160));
}

function print(record: ApiKeyRecord, options: CommonOptions): void {
  if (options.json) {
    writeJson(record);
    return;
  }
  const members = { ...record, scopes: record.scopes.join(' '), state: stateOf(record) };
  const lines = Object.entries(members).map(
    ([name, value]) => `${name.padEnd(12)}${printable(value ?? 'never')}`,
  );
  write(lines.join('\n'));
}

function stateOf({ revoked_at, expires_at }: ApiKeyRecord): string {
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? 'expired' : 'valid';
}

function writeJson(value: object): void {
  write(JSON.stringify(value, null, 2));
}

function write(text: string): void {
  process.stdout.write(`${text}\n`);
}
