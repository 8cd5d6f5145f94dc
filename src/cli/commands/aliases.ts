// `sagitta aliases`: list, set, delete.

import type { Command } from 'commander';
import type { AliasRecord } from '../../client/client.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import { usageError } from '../failure.js';
import { tableForStdout } from '../table.js';

const EXAMPLES = `
Examples:
  $ sagitta aliases list
  $ sagitta aliases set articles=articles-2025
  $ sagitta aliases set live=build-8 previous=build-7    at the same moment
  $ sagitta aliases delete articles`;

interface CommonOptions extends ConnectionOptions {
  readonly json?: boolean;
}

export function defineAliases(command: Command): void {
  command.addHelpText('after', EXAMPLES);

  const list = command.command('list').description('list all aliases in the order of their names');
  addCommonOptions(list).action(async (options: CommonOptions) => {
    const records: AliasRecord[] = [];
    for await (const record of connect(options).aliases.all()) records.push(record);
    print(records, options);
  });

  const set = command
    .command('set')
    .description('make aliases, or point them to other collections, all at the same moment')
    .argument('<name=collection...>', 'alias and the id of its collection');
  addCommonOptions(set).action(async (pairs: readonly string[], options: CommonOptions) => {
    const targets = Object.fromEntries(pairs.map(parsePair));
    print(await connect(options).aliases.change(targets), options);
  });

  const remove = command
    .command('delete')
    .description('delete an alias; the collection remains')
    .argument('<name>', 'alias');
  addCommonOptions(remove).action(async (name: string, options: CommonOptions) => {
    const reply = await connect(options).aliases.delete(name);
    write(options.json ? JSON.stringify(reply) : `Deleted alias ${name}.`);
  });
}

function addCommonOptions(command: Command): Command {
  return addConnectionOptions(command.option('--json', 'print the result as JSON'));
}

function parsePair(text: string): [name: string, collection: string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) {
    throw usageError(`expected name=collection, found "${text}"`);
  }
  return [text.slice(0, at), text.slice(at + 1)];
}

function print(records: readonly AliasRecord[], options: CommonOptions): void {
  if (options.json) {
    write(JSON.stringify(records, null, 2));
    return;
  }
  if (records.length === 0) {
    write('No aliases.');
    return;
  }
  const columns = [{ title: 'alias' }, { title: 'collection' }, { title: 'updated' }];
  const rows = records.map((record) => [record.name, record.collection, record.updated_at]);
  write(tableForStdout(columns, rows));
}

function write(text: string): void {
  process.stdout.write(`${text}\n`);
}
