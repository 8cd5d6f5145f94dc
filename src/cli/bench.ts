// `sagitta bench`: the compiled benches, where the installation has them. What they measure, and
// what they take, is theirs to say; this passes it on.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { ENGINE_CHOICES } from '../config.js';
import { CliError, EXIT_CODES } from './failure.js';

const EXAMPLES = `
Without --full a bench takes seconds, shows that it works, and proves nothing.

Examples:
  $ sagitta bench
  $ sagitta bench engine --full
  $ sagitta bench engine rest --full --out results
  $ sagitta bench engine --full --engine reference
  $ sagitta bench --engine cuda --full           the engine on a GPU, and its kernels alone`;

interface BenchOptions {
  readonly full?: boolean;
  readonly out?: string;
  readonly engine?: string;
}

export function addBenchCommand(program: Command): void {
  program
    .command('bench')
    .description('measure this machine')
    .argument('[names...]', 'some of the benches; all unless told otherwise')
    .option('--full', 'with the sizes of docs/performance.md: half an hour')
    .option('--out <folder>', 'also write a Markdown file a bench')
    .addOption(
      new Option('--engine <name>', 'the engine of the engine bench').choices(ENGINE_CHOICES),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (names: readonly string[], options: BenchOptions) => {
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
  const path = fileURLToPath(new URL('../../bench/main.js', import.meta.url));
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
