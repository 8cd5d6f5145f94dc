// `sagitta selftest`: runs the engine contract on this machine, without a server and without the sources. Progress goes
// to stderr, one line per case; the table or JSON goes to stdout.

import { type Command, InvalidArgumentError } from 'commander';
import { packageVersion } from '../../common/package-files.js';
import { ENGINE_CHOICES } from '../../platform/config.js';
import type { CaseResult } from '../../tools/selftest/run-contract.js';
import { EXIT_CODES, usageError } from '../terminal/failure.js';
import { wholeNumber } from '../terminal/option-values.js';
import { formatSeconds } from '../terminal/units.js';
import { describeMachine, renderReport, toJson } from './selftest-report.js';

const EXAMPLES = `
Each case generates random rows and queries, computes the exact result by brute
force, and compares ids and score bits. Without --engine, every engine that
starts on this machine is checked and the others are skipped, with the reason;
an engine named with --engine must start.

Examples:
  $ sagitta selftest
  $ sagitta selftest --engine simd --targets
  $ sagitta selftest --engine reference --engine simd --case 'page by page'
  $ sagitta selftest --seed 12345   (repeat an earlier run)
  $ sagitta selftest --json > selftest.json

Exit codes: ${EXIT_CODES.success} all cases passed, ${EXIT_CODES.failure} a case or engine failed,
${EXIT_CODES.usage} invalid arguments.`;

const ENGINES = ENGINE_CHOICES.filter((name) => name !== 'auto');
type EngineName = (typeof ENGINES)[number];
const SEED_MAX = 2 ** 32 - 1;

interface SelftestCommandOptions {
  readonly engine?: readonly EngineName[];
  readonly seed?: number;
  readonly case?: string;
  readonly targets?: boolean;
  readonly threads?: number;
  readonly json?: boolean;
}

export function defineSelftest(command: Command): void {
  command
    .option(
      '--engine <name>',
      `engine to check: ${ENGINES.join(', ')}; may be repeated`,
      collectEngine,
    )
    .option(
      '--seed <n>',
      'random seed for rows and queries (default: random)',
      wholeNumber(0, SEED_MAX),
    )
    .option('--case <text>', 'only cases whose name contains this text')
    .option('--targets', 'check the simd engine with every instruction set of this CPU')
    .option('--threads <n>', 'worker threads (default: one per core)', wholeNumber(1, 1_024))
    .option('--json', 'print the report as JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: SelftestCommandOptions) => selftest(options, packageVersion()));
}

function collectEngine(text: string, before: readonly EngineName[] = []): EngineName[] {
  const name = ENGINES.find((known) => known === text);
  if (name === undefined) {
    throw new InvalidArgumentError(`Expected one of ${ENGINES.join(', ')}.`);
  }
  return before.includes(name) ? [...before] : [...before, name];
}

async function selftest(options: SelftestCommandOptions, version: string): Promise<void> {
  // Loaded only here, so that the other commands, which need no engine, start in half the time.
  const { chooseCases, runSelftest } = await import('../../tools/selftest/selftest.js');
  const only = options.case ?? null;
  if (chooseCases(only).length === 0) {
    const names = chooseCases(null).map(({ name }) => `  ${name}`);
    const found = JSON.stringify(only);
    throw usageError(`--case: no case name contains ${found}. The cases are:\n${names.join('\n')}`);
  }
  const seed = options.seed ?? Date.now() % 1_000_000_007;
  const machine = describeMachine(version);
  process.stderr.write(`seed ${seed}\n`);
  const report = await runSelftest({
    engines: options.engine ?? null,
    seed,
    only,
    allTargets: options.targets ?? false,
    threadCount: options.threads ?? null,
    onStart: showStart,
    onResult: showResult,
  });
  const run = { machine, seed, only, report };
  const text = options.json
    ? JSON.stringify(toJson(run), null, 2)
    : renderReport(run, process.stdout.columns ?? Number.POSITIVE_INFINITY);
  const exitCode = report.passed ? EXIT_CODES.success : EXIT_CODES.failure;
  process.exitCode = exitCode;
  // Threads of an engine that hangs would keep the process alive.
  const onWritten = report.hangs ? () => process.exit(exitCode) : () => {};
  process.stdout.write(`${text}\n`, onWritten);
}

/** Prints the name before the case runs, so that a crash shows which case it was. */
function showStart(label: string, name: string, position: number, count: number): void {
  process.stderr.write(`${label}  ${position}/${count}  ${name}  `);
}

function showResult({ status, seconds }: CaseResult): void {
  process.stderr.write(`${status === 'passed' ? 'ok' : 'FAILED'}, ${formatSeconds(seconds)}\n`);
}
