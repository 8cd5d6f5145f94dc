#!/usr/bin/env -S MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 node --max-semi-space-size=8
// The command `sagitta`: reads the arguments, runs the command, and turns a failure into a sentence
// on stderr and an exit code.

import { Command } from 'commander';
import { packageVersion } from '../common/package-version.js';
import { addBackupCommand } from './commands/backup.js';
import { addBenchCommand } from './commands/bench.js';
import { addCollectionsCommand } from './commands/collections.js';
import { addCompletionCommand } from './commands/completion.js';
import { addDemoCommand } from './commands/demo.js';
import { addExportCommand } from './commands/export.js';
import { addImportCommand } from './commands/import.js';
import { addJoinCommand } from './commands/join.js';
import { addKeysCommand } from './commands/keys.js';
import { addQueryCommand } from './commands/query.js';
import { addRestoreCommand } from './commands/restore.js';
import { addSelftestCommand } from './commands/selftest.js';
import { addServeCommand } from './commands/serve.js';
import { addVerifyCommand } from './commands/verify.js';
import { EXIT_CODES, EXIT_CODES_TEXT, reportFailure } from './failure.js';

const EXAMPLES = `
Examples:
  $ sagitta demo                           a server with sample data
  $ sagitta serve --data-dir ./data
  $ sagitta import rows.ndjson --collection docs
  $ sagitta query docs --id a1 --top-k 5
  $ sagitta export docs -o docs.parquet
  $ sagitta join docs --score-threshold 0.95 -o duplicates.csv
  $ sagitta keys create --owner search --scope vectors:read
  $ sagitta backup --to /mnt/backups/monday
  $ sagitta selftest                       every engine of this machine, checked

${EXIT_CODES_TEXT}`;

function createProgram(): Command {
  const program = new Command('sagitta')
    .description('A vector database over REST that answers nearest-neighbour queries exactly.')
    .version(packageVersion())
    .option('--debug', 'print stack traces of failures')
    .addHelpText('after', EXAMPLES)
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'sagitta: ')),
    })
    // Also beside the long names of settings on a terminal of 80 columns.
    .configureHelp({ minWidthToWrap: 24 })
    .exitOverride();
  addServeCommand(program);
  addDemoCommand(program);
  addImportCommand(program);
  addExportCommand(program);
  addQueryCommand(program);
  addJoinCommand(program);
  addCollectionsCommand(program);
  addKeysCommand(program);
  addBackupCommand(program);
  addRestoreCommand(program);
  addVerifyCommand(program);
  addSelftestCommand(program);
  addBenchCommand(program);
  addCompletionCommand(program);
  return program;
}

// `sagitta query … | head` closes our output early, which is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT_CODES.success);
});

const program = createProgram();
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error, program.opts<{ debug?: boolean }>().debug === true);
  // A pipe that is still being read would hold the process.
  if (process.exitCode === EXIT_CODES.interrupted) process.exit();
}
