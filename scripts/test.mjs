// Runs the compiled tests in several processes and exits with 1 if any test fails. The name of a test file says which
// run it belongs to: *.test.ts, *.ci.test.ts or *.nightly.test.ts.
//
//   npm test                                    *.test.ts, whose tests take at most one CPU second
//   node scripts/test.mjs --ci                  *.ci.test.ts
//   node scripts/test.mjs --nightly             all files, with more rounds of random tests
//   npm test -- server/routes                   files whose path contains `server/routes`, from every run unless
//                                               --quick, --ci or --nightly selects one
//   … --except console/                         leaves out files whose path contains this
//   … --test-name-pattern=cursor                only tests whose title contains this
//   … --random SEED                             files in random order; chooses the seed if none is given
//   … --jobs N                                  number of processes (default 3)
//   … --may-skip PATTERN                        fails if a test is skipped for a reason that does not match
//   … --budget                                  fails if a test or file exceeds its CPU time
//   … --record                                  writes test/times.json, which balances files across processes
//   … --seconds-max N                           time limit of each test, in place of the limit of its run
//   … --root DIRECTORY                          runs the tests of another checkout
//
// dist/test-results.json lists the CPU seconds of each file and test.
//
// A file with a failed test runs again, alone. A test that passes then is reported as flaky and does not fail the run.
// No process that a test starts outlives the test process.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { dealFiles } from './testing/deal.mjs';
import { compiledPath, listTests, tierOf } from './testing/files.mjs';
import { TestProcess } from './testing/process.mjs';
import { Report } from './testing/report.mjs';

/** One more than two cores, because tests also wait for timeouts and processes. */
const JOBS = 3;
/** Seconds a single test may take before its process is killed, by run. */
const TEST_SECONDS_MAX = { quick: 120, ci: 400, nightly: 7_200 };

const { values: options, positionals: parts } = parseArgs({
  args: withSeed(process.argv.slice(2)),
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    ci: { type: 'boolean', default: false },
    nightly: { type: 'boolean', default: false },
    except: { type: 'string', multiple: true, default: [] },
    'test-name-pattern': { type: 'string', multiple: true, default: [] },
    random: { type: 'string' },
    jobs: { type: 'string', default: String(JOBS) },
    'may-skip': { type: 'string' },
    budget: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    'seconds-max': { type: 'string' },
    root: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
  },
});
const tier = options.nightly ? 'nightly' : options.ci ? 'ci' : 'quick';
const timesPath = join(options.root, 'test', 'times.json');
const isAnyTier = parts.length > 0 && !options.quick && !options.ci;
const files = listTests(options.root, {
  tier: isAnyTier ? 'nightly' : tier,
  parts,
  except: options.except,
});
if (files.length === 0) {
  fail(
    `Expected ${parts.map((part) => `"${part}"`).join(' or ')} in the path of a test file; found none`,
  );
}
const missing = files.find((file) => !existsSync(compiledPath(options.root, file)));
if (missing !== undefined) {
  fail(
    `${compiledPath(options.root, missing)} is missing: run \`node scripts/build.mjs tests\` first`,
  );
}

const times = existsSync(timesPath) ? JSON.parse(readFileSync(timesPath, 'utf8')) : {};
const report = new Report({
  skipPattern: options['may-skip'],
  isBudgetKept: options.budget,
  times,
});
const queue = dealFiles(files, { times, random: options.random });
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    queue.length = 0;
    for (const child of running) child.end();
    report.interrupted(signal);
  });
}

if (options.random !== undefined) console.log(`files in random order: --random ${options.random}`);
await Promise.all(Array.from({ length: Number(options.jobs) }, work));
// One after another, so that tests which fail only under load pass now.
for (const file of report.filesToRepeat()) await run([file], { isAlone: true });
report.print();
writeFileSync(join(options.root, 'dist', 'test-results.json'), report.toJson());
if (options.record && report.isSuccess) recordTimes(report.cpuSeconds);
process.exitCode = report.isSuccess ? 0 : 1;

/** Runs groups of files until the queue is empty. */
async function work() {
  for (let group = queue.shift(); group !== undefined; group = queue.shift()) {
    const left = await run(group, { isAlone: false });
    // A process that ended early leaves files that have not run.
    if (left.length > 0) queue.push(left);
  }
}

/** Runs the files in a new process. Returns the files that have not run. */
async function run(group, { isAlone }) {
  const isNightly = tier === 'nightly';
  const child = new TestProcess(group, {
    root: options.root,
    patterns: options['test-name-pattern'],
    environment: isNightly ? { SAGITTA_TEST_NIGHTLY: '1' } : {},
    secondsMax: Number(options['seconds-max'] ?? secondsMaxOf(group)),
    hasSourceMaps: isAlone,
  });
  running.add(child);
  const result = await child.result;
  running.delete(child);
  report.add(result, { isAlone });
  return result.filesLeft;
}

/** The highest time limit of any file in the group. */
function secondsMaxOf(group) {
  return Math.max(
    ...group.map((file) => TEST_SECONDS_MAX[tier === 'nightly' ? tier : tierOf(file)]),
  );
}

/** Writes test/times.json. Files that did not run keep their recorded times. */
function recordTimes(seconds) {
  const known = new Set(listTests(options.root, { tier: 'nightly', parts: [], except: [] }));
  const all = Object.entries({ ...times, ...seconds }).filter(([file]) => known.has(file));
  const sorted = all.sort(([left], [right]) => (left < right ? -1 : 1));
  writeFileSync(timesPath, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}

/** Adds a seed to a `--random` without one. */
function withSeed(words) {
  const at = words.indexOf('--random');
  if (at === -1 || /^\d+$/.test(words[at + 1] ?? '')) return words;
  return words.toSpliced(at + 1, 0, String(Math.floor(Math.random() * 1e6)));
}

function fail(message) {
  console.error(`test: ${message}`);
  process.exit(1);
}
