// `sagitta selftest`: the contract of engines on the user's own machine, without a server and without
// the sources. Progress goes to stderr, a line a case; the table, or JSON, to stdout.

import { type Command, InvalidArgumentError } from 'commander';
import { ENGINE_CHOICES } from '../../platform/config.js';
import type { CaseResult } from '../../tools/selftest/run-contract.js';
import { EXIT_CODES, usageError } from '../failure.js';
import { wholeNumber } from '../options.js';
import { formatSeconds } from '../progress.js';
import { describeMachine, renderReport, toJson } from './selftest-report.js';

const EXAMPLES = `
Every case draws rows and queries, computes the answer by brute force, and
compares ids and score bits. Without --engine every engine that starts here is
checked and the others are skipped, with the reason; an engine that is named has
to start.

Examples:
  $ sagitta selftest
  $ sagitta selftest --engine simd --targets
  $ sagitta selftest --engine reference --engine simd --case 'page by page'
  $ sagitta selftest --seed 12345         the rows and queries of an earlier run
  $ sagitta selftest --json > selftest.json

Exit codes: ${EXIT_CODES.success} everything that ran passed,
${EXIT_CODES.failure} something failed, ${EXIT_CODES.usage} not understood.`;

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

export function addSelftestCommand(program: Command): void {
  program
    .command('selftest')
    .description('check on this machine that its engines answer exactly')
    .option('--engine <name>', `${ENGINES.join(', ')}; again for another`, collectEngine)
    .option('--seed <n>', 'what rows and queries are drawn from (random)', wholeNumber(0, SEED_MAX))
    .option('--case <text>', 'only cases whose names contain this')
    .option('--targets', 'the simd engine with every instruction set of this processor')
    .option('--threads <n>', 'worker threads (one a core)', wholeNumber(1, 1_024))
    .option('--json', 'the report as JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: SelftestCommandOptions) => selftest(options, program.version() ?? ''));
}

function collectEngine(text: string, before: readonly EngineName[] = []): EngineName[] {
  const name = ENGINES.find((known) => known === text);
  if (name === undefined) {
    throw new InvalidArgumentError(`Expected one of ${ENGINES.join(', ')}.`);
  }
  return before.includes(name) ? [...before] : [...before, name];
}

async function selftest(options: SelftestCommandOptions, version: string): Promise<void> {
  // Not before: the other commands have no need of the engines and start in half the time.
  const { chooseCases, runSelftest } = await import('../../tools/selftest/selftest.js');
  const only = options.case ?? null;
  if (chooseCases(only).length === 0) {
    const names = chooseCases(null).map(({ name }) => `  ${name}`);
    const found = JSON.stringify(only);
    throw usageError(`--case: no case has ${found} in its name. There are\n${names.join('\n')}`);
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
  // Threads of an engine that hangs would keep the process for ever.
  const onWritten = report.hangs ? () => process.exit(exitCode) : () => {};
  process.stdout.write(`${text}\n`, onWritten);
}

/** The name stands there before the case runs: a crash then says where. */
function showStart(label: string, name: string, place: number, count: number): void {
  process.stderr.write(`${label}  ${place}/${count}  ${name}  `);
}

function showResult({ status, seconds }: CaseResult): void {
  process.stderr.write(`${status === 'passed' ? 'ok' : 'FAILED'}, ${formatSeconds(seconds)}\n`);
}
