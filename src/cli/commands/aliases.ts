// `sagitta aliases`: lists, sets and deletes aliases.

import type { AliasRecord } from '@sagitta/client';
import type { Command } from 'commander';
import { addReplyOptions, connect, type ReplyOptions } from '../service/connection.js';
import { usageError } from '../terminal/failure.js';
import { print, write } from '../terminal/printing.js';
import { tableForStdout } from '../terminal/table.js';

const EXAMPLES = `
Examples:
  $ sagitta aliases list
  $ sagitta aliases set articles=articles-2025
  $ sagitta aliases set live=build-8 previous=build-7    atomically
  $ sagitta aliases delete articles`;

export function defineAliases(command: Command): void {
  command.addHelpText('after', EXAMPLES);

  const list = command.command('list').description('list all aliases in the order of their names');
  addReplyOptions(list).action(async (options: ReplyOptions) => {
    const records: AliasRecord[] = [];
    for await (const record of connect(options).aliases.all()) records.push(record);
    printAll(records, options);
  });

  const set = command
    .command('set')
    .description('create aliases, or point them to other collections, atomically')
    .argument('<name=collection...>', 'alias and the id of its collection');
  addReplyOptions(set).action(async (pairs: readonly string[], options: ReplyOptions) => {
    const targets = Object.fromEntries(pairs.map(parsePair));
    printAll(await connect(options).aliases.change(targets), options);
  });

  const remove = command
    .command('delete')
    .description('delete an alias; the collection remains')
    .argument('<name>', 'alias');
  addReplyOptions(remove).action(async (name: string, options: ReplyOptions) => {
    const reply = await connect(options).aliases.delete(name);
    write(options.json ? JSON.stringify(reply) : `Deleted alias ${name}.`);
  });
}

function parsePair(text: string): [name: string, collection: string] {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1) {
    throw usageError(`expected name=collection, found "${text}"`);
  }
  return [text.slice(0, at), text.slice(at + 1)];
}

function printAll(records: readonly AliasRecord[], options: ReplyOptions): void {
  print(records, options, () => {
    if (records.length === 0) return 'No aliases.';
    const columns = [{ title: 'alias' }, { title: 'collection' }, { title: 'updated' }];
    const rows = records.map((record) => [record.name, record.collection, record.updated_at]);
    return tableForStdout(columns, rows);
  });
}
