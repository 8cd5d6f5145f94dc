// `sagitta update`: changes the metadata of vectors by filter, in atomic steps.

import type { Command } from 'commander';
import { addConnectionOptions, type ConnectionOptions, connect } from '../service/connection.js';
import { EXIT_CODES_TEXT, usageError } from '../terminal/failure.js';
import { readJsonObject, wholeNumber } from '../terminal/option-values.js';
import { pluralize } from '../terminal/units.js';

const EXAMPLES = `
Vectors that the change would leave as they are are not written, so the command
can be repeated after an interruption.

Examples:
  $ sagitta update articles --filter '{"draft": true}' --patch '{"draft": null}'
  $ sagitta update articles --all --patch @patch.json
  $ sagitta update articles --filter '{"old": true}' \\
      --replace '{"archived": true}'

${EXIT_CODES_TEXT}`;

interface UpdateOptions extends ConnectionOptions {
  readonly filter?: string;
  readonly all?: boolean;
  readonly patch?: string;
  readonly replace?: string;
  readonly batch: number;
}

export function defineUpdate(command: Command): void {
  command
    .argument('<collection>', 'collection id or alias')
    .option('--filter <json|@file>', 'change the vectors whose metadata matches')
    .option('--all', 'change every vector')
    .option('--patch <json|@file>', 'JSON merge patch of the metadata: null removes a member')
    .option('--replace <json|@file>', 'new metadata, which replaces the old')
    .option('--batch <n>', 'vectors per atomic step', wholeNumber(1, 10_000), 5_000);
  addConnectionOptions(command.addHelpText('after', EXAMPLES)).action(runUpdate);
}

async function runUpdate(id: string, options: UpdateOptions): Promise<void> {
  const { filter, all, patch, replace, batch } = options;
  if ((filter === undefined) === (all !== true)) throw usageError('pass one of --filter and --all');
  if ((patch === undefined) === (replace === undefined)) {
    throw usageError('pass one of --patch and --replace');
  }
  const selection =
    filter === undefined ? { all: true as const } : { filter: readJsonObject('--filter', filter) };
  const change =
    patch === undefined
      ? { metadata: readJsonObject('--replace', replace!) }
      : { patch: readJsonObject('--patch', patch) };
  const vectors = connect(options).collection(id);
  let updatedCount = 0;
  let hasMore = true;
  while (hasMore) {
    const reply = await vectors.updateMany(selection, change, { limit: batch });
    updatedCount += reply.updated_count;
    hasMore = reply.has_more;
  }
  process.stdout.write(`Updated ${pluralize(updatedCount, 'vector')}.\n`);
}
