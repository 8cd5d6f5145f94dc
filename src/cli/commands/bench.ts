// `sagitta bench`: queries against a running server, or the compiled benches, where the installation
// has them. What those measure, and what they take, is theirs to say; this passes it on.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { ENGINE_CHOICES } from '../../platform/config.js';
import { addConnectionOptions, type ConnectionOptions, connect } from '../connection.js';
import { CliError, EXIT_CODES, EXIT_CODES_TEXT, usageError } from '../failure.js';
import { wholeNumber } from '../options.js';

const EXAMPLES = `
Without --full a bench takes seconds, shows that it works, and proves nothing.

Examples:
  $ sagitta bench
  $ sagitta bench engine --full
  $ sagitta bench engine rest --full --out results
  $ sagitta bench engine --full --engine reference
  $ sagitta bench --engine cuda --full   the engine on a GPU, its kernels alone
  $ sagitta bench --collection docs --clients 32 --seconds 10
  $ sagitta bench --collection sift --file sift-128-euclidean.hdf5 \\
      --url http://10.0.0.5:8484

With --collection it asks a running server for the nearest of random vectors, or
of a file's.

${EXIT_CODES_TEXT}`;

interface BenchOptions extends ConnectionOptions {
  readonly collection?: string;
  readonly clients: number;
  readonly seconds: number;
  readonly topK: number;
  readonly file?: string;
  readonly json?: boolean;
  readonly full?: boolean;
  readonly out?: string;
  readonly engine?: string;
}

export function addBenchCommand(program: Command): void {
  const command = program
    .command('bench')
    .description('measure this machine, or a running server')
    .argument('[names...]', 'some of the benches; all unless told otherwise')
    .option('--full', 'with the sizes of docs/performance.md: half an hour')
    .option('--out <folder>', 'also write a Markdown file a bench')
    .addOption(
      new Option('--engine <name>', 'the engine of the engine bench').choices(ENGINE_CHOICES),
    )
    .option('-c, --collection <id>', 'ask a running server for vectors of this collection')
    .option('--clients <n>', 'queries under way at once', wholeNumber(1, 1_000), 8)
    .option('--seconds <n>', 'for how long', wholeNumber(1, 3_600), 5)
    .option('-k, --top-k <n>', 'how many of the nearest', wholeNumber(1, 1e6), 10)
    .option('--file <file>', 'queries in place of random ones, as sagitta query takes them')
    .option('--json', 'the figures of a server as JSON')
    .addHelpText('after', EXAMPLES);
  addConnectionOptions(command).action(async (names: readonly string[], options: BenchOptions) => {
    const { collection } = options;
    if (collection !== undefined) {
      if (names.length > 0) {
        throw usageError(`--collection asks a server; found the bench ${names[0]} as well`);
      }
      const { benchServer } = await import('./bench-server.js');
      return await benchServer(connect(options), { ...options, collection });
    }
    process.exitCode = await runBench(benchPath(), [...names, ...toArguments(options)]);
  });
}

function toArguments({ full, out, engine }: BenchOptions): string[] {
  return [
    ...(full === true ? ['--full'] : []),
    ...(out === undefined ? [] : ['--out', out]),
    ...(engine === undefined ? [] : ['--engine', engine]),
  ];
}

/** Beside the compiled sources: dist/src and dist/bench. */
function benchPath(): string {
  const path = fileURLToPath(new URL('../../../bench/main.js', import.meta.url));
  if (existsSync(path)) return path;
  throw new CliError(
    `the benches are not part of this installation: expected ${path}. ` +
      'They come with the sources, where npm run build compiles them.',
  );
}

/** The exit code of the bench, whose output goes where ours goes. */
function runBench(path: string, args: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, [path, ...args], { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals): void => {
    child.kill(signal);
  };
  process.on('SIGTERM', forward);
  process.on('SIGINT', forward);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      resolve(code ?? (signal === null ? EXIT_CODES.failure : 128 + constants.signals[signal]));
    });
  });
}
