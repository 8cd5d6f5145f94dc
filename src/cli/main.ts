// Entry point of the `sagitta` command: parses the arguments, runs the command, and reports a failure
// as a message on stderr and an exit code.

import { Command } from 'commander';
import { packageVersion } from '../common/package-files.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, reportFailure } from './terminal/failure.js';
import { completeWrites } from './terminal/whole-writes.js';

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

/** A command as the program lists it; the rest is loaded when the command is used. */
interface CommandEntry {
  readonly name: string;
  readonly description: string;
  /** Loads the function that adds arguments, options and the action. */
  load(): Promise<(command: Command) => void>;
}

const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    description: 'run the server',
    load: async () => (await import('./commands/serve.js')).defineServe,
  },
  {
    name: 'demo',
    description: 'run the server with sample collections',
    load: async () => (await import('./commands/demo.js')).defineDemo,
  },
  {
    name: 'import',
    description: 'import vectors from files into a collection',
    load: async () => (await import('./commands/import.js')).defineImport,
  },
  {
    name: 'export',
    description: 'export a collection to a file',
    load: async () => (await import('./commands/export.js')).defineExport,
  },
  {
    name: 'query',
    description: 'find the nearest vectors of a collection',
    load: async () => (await import('./commands/query.js')).defineQuery,
  },
  {
    name: 'join',
    description: 'find the nearest neighbours of every vector of a collection',
    load: async () => (await import('./commands/join.js')).defineJoin,
  },
  {
    name: 'aggregate',
    description: 'count the values of metadata fields and summarize numbers',
    load: async () => (await import('./commands/aggregate.js')).defineAggregate,
  },
  {
    name: 'update',
    description: 'change the metadata of vectors by filter',
    load: async () => (await import('./commands/update.js')).defineUpdate,
  },
  {
    name: 'collections',
    description: 'list, create, show, clone, rename and delete collections',
    load: async () => (await import('./commands/collections.js')).defineCollections,
  },
  {
    name: 'aliases',
    description: 'list, set and delete aliases of collections',
    load: async () => (await import('./commands/aliases.js')).defineAliases,
  },
  {
    name: 'keys',
    description: 'create, list, rotate and revoke API keys',
    load: async () => (await import('./commands/keys.js')).defineKeys,
  },
  {
    name: 'audit',
    description: 'list changes to collections, aliases, keys and backups, newest first',
    load: async () => (await import('./commands/audit.js')).defineAudit,
  },
  {
    name: 'backup',
    description: 'back up a data directory, with or without a running server',
    load: async () => (await import('./commands/backup.js')).defineBackup,
  },
  {
    name: 'restore',
    description: 'create a data directory from a backup',
    load: async () => (await import('./commands/restore.js')).defineRestore,
  },
  {
    name: 'cluster',
    description: 'show the nodes of a cluster, drain them, and move collections',
    load: async () => (await import('./commands/cluster.js')).defineCluster,
  },
  {
    name: 'verify',
    description: 'verify the checksums and invariants of a data directory or backup',
    load: async () => (await import('./commands/verify.js')).defineVerify,
  },
  {
    name: 'selftest',
    description: 'check that every engine on this machine returns exact results',
    load: async () => (await import('./commands/selftest.js')).defineSelftest,
  },
  {
    name: 'doctor',
    description: 'examine the GPUs of this machine',
    load: async () => (await import('./commands/doctor.js')).defineDoctor,
  },
  {
    name: 'bench',
    description: 'measure this machine or a running server',
    load: async () => (await import('./commands/bench.js')).defineBench,
  },
  {
    name: 'completion',
    description: 'print a shell completion script',
    load: async () => (await import('./commands/completion.js')).defineCompletion,
  },
];

/** The program with all commands. Only commands among `words` are loaded. */
async function createProgram(words: readonly string[]): Promise<Command> {
  const program = new Command('sagitta')
    .description('An exact vector database: nearest-neighbour search over REST.')
    .version(packageVersion())
    .option('--debug', 'print stack traces on failure')
    .addHelpText('after', EXAMPLES)
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'sagitta: ')),
    })
    // Also wraps descriptions beside the long option names of `serve` on an 80-column terminal.
    .configureHelp({ minWidthToWrap: 24 })
    .exitOverride();
  // A completion script lists the options of all commands.
  const isLoaded = (name: string) => words.includes(name) || words.includes('completion');
  for (const { name, description, load } of COMMANDS) {
    const command = program.command(name).description(description);
    if (isLoaded(name)) (await load())(command);
  }
  return program;
}

/** Runs the command named by the arguments of the process and sets the exit code. */
export async function runCommand(): Promise<void> {
  completeWrites(process.stdout);
  // `sagitta query … | head` closes stdout early, which is not a failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT_CODES.success);
    process.exit(reportFailure(new CliError(`cannot write to stdout: ${error.message}`), false));
  });
  // The command is the first word, or the second one after `help` or an option of the program.
  const program = await createProgram(process.argv.slice(2, 4));
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = reportFailure(error, program.opts<{ debug?: boolean }>().debug === true);
    // An open read on a pipe would keep the process alive.
    if (process.exitCode !== EXIT_CODES.success) process.exit();
  }
}
