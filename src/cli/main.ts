// Entry point of the `sagitta` command: parses the arguments, runs the command, and reports a failure
// as a message on stderr and an exit code.

import { Command } from 'commander';
import { packageVersion } from '../common/package-version.js';
import { addAggregateCommand } from './commands/aggregate.js';
import { addAliasesCommand } from './commands/aliases.js';
import { addAuditCommand } from './commands/audit.js';
import { addBackupCommand } from './commands/backup.js';
import { addBenchCommand } from './commands/bench.js';
import { addClusterCommand } from './commands/cluster.js';
import { addCollectionsCommand } from './commands/collections.js';
import { addCompletionCommand } from './commands/completion.js';
import { addDemoCommand } from './commands/demo.js';
import { addDoctorCommand } from './commands/doctor.js';
import { addExportCommand } from './commands/export.js';
import { addImportCommand } from './commands/import.js';
import { addJoinCommand } from './commands/join.js';
import { addKeysCommand } from './commands/keys.js';
import { addQueryCommand } from './commands/query.js';
import { addRestoreCommand } from './commands/restore.js';
import { addSelftestCommand } from './commands/selftest.js';
import { addServeCommand } from './commands/serve.js';
import { addUpdateCommand } from './commands/update.js';
import { addVerifyCommand } from './commands/verify.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, reportFailure } from './failure.js';
import { completeWrites } from './whole-writes.js';

const EXAMPLES = `
Examples:
  $ sagitta demo                           run a server with sample data
  $ sagitta serve --data-dir ./data
  $ sagitta import rows.ndjson --collection docs
  $ sagitta query docs --id a1 --top-k 5
  $ sagitta export docs -o docs.parquet
  $ sagitta join docs --score-threshold 0.95 -o duplicates.csv
  $ sagitta keys create --owner search --scope vectors:read
  $ sagitta backup --to /mnt/backups/monday
  $ sagitta selftest                       check every engine on this machine

${EXIT_CODES_TEXT}`;

function createProgram(): Command {
  const program = new Command('sagitta')
    .description('An exact vector database: nearest-neighbour search over REST.')
    .version(packageVersion())
    .option('--debug', 'print stack traces on failure')
    .addHelpText('after', EXAMPLES)
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'sagitta: ')),
    })
    // Wraps descriptions next to the long option names of `serve` on an 80-column terminal, too.
    .configureHelp({ minWidthToWrap: 24 })
    .exitOverride();
  addServeCommand(program);
  addDemoCommand(program);
  addImportCommand(program);
  addExportCommand(program);
  addQueryCommand(program);
  addJoinCommand(program);
  addAggregateCommand(program);
  addUpdateCommand(program);
  addCollectionsCommand(program);
  addAliasesCommand(program);
  addKeysCommand(program);
  addAuditCommand(program);
  addBackupCommand(program);
  addRestoreCommand(program);
  addClusterCommand(program);
  addVerifyCommand(program);
  addSelftestCommand(program);
  addDoctorCommand(program);
  addBenchCommand(program);
  addCompletionCommand(program);
  return program;
}

completeWrites(process.stdout);

// `sagitta query … | head` closes stdout early; that is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_CODES.success);
  process.exit(reportFailure(new CliError(`cannot write to stdout: ${error.message}`), false));
});

const program = createProgram();
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = reportFailure(error, program.opts<{ debug?: boolean }>().debug === true);
  // An open read on a pipe would keep the process alive.
  if (process.exitCode === EXIT_CODES.interrupted) process.exit();
}
