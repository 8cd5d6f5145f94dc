// Runs the compiled tests, several processes at once, and exits with 1 when one fails. A file says by its name in which
// run it takes part: *.test.ts, *.ci.test.ts or *.nightly.test.ts.
//
//   npm test                                    *.test.ts, whose tests take a CPU second at most
//   node scripts/test.mjs --ci                  *.ci.test.ts
//   node scripts/test.mjs --nightly             all files, with more rounds of random tests
//   npm test -- server/routes                   files whose path contains `server/routes`; of every run, unless --quick,
//                                               --ci or --nightly chooses one
//   … --except console/                         without files whose path contains this
//   … --test-name-pattern=cursor                tests with this in their title
//   … --random SEED                             files in random order; --random alone chooses the seed
//   … --jobs N                                  processes at once (default 3)
//   … --may-skip PATTERN                        fails when a test is skipped for a reason that does not match
//   … --budget                                  fails when a test or a file takes more CPU time than it may
//   … --record                                  writes test/times.json, by which files are dealt to processes
//   … --seconds-max N                           limits each test, instead of the limit of its run
//   … --root DIRECTORY                          the tests of another checkout
//
// dist/test-results.json has the CPU seconds of each file and test.
//
// A test that fails is run once more, its file alone: if it passes then, it is reported as flaky and does not fail the
// run. Nothing that a test has started outlives its process.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { dealFiles } from './testing/deal.mjs';
import { compiledPath, listTests, tierOf } from './testing/files.mjs';
import { TestProcess } from './testing/process.mjs';
import { Report } from './testing/report.mjs';

/** One more than two cores, since tests also wait for timeouts and processes. */
const JOBS = 3;
/** How long a single test may take, in seconds, before its process is ended. */
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
  fail(`no test file has ${parts.map((part) => `"${part}"`).join(' or ')} in its path`);
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
// One after another: what fails only beside others passes now.
for (const file of report.filesToRepeat()) await run([file], { isAlone: true });
report.print();
writeFileSync(join(options.root, 'dist', 'test-results.json'), report.toJson());
if (options.record && report.isSuccess) recordTimes(report.cpuSeconds);
process.exitCode = report.isSuccess ? 0 : 1;

/** Runs groups of files until none is left. */
async function work() {
  for (let group = queue.shift(); group !== undefined; group = queue.shift()) {
    const left = await run(group, { isAlone: false });
    // A process that ended early has not run all of its files.
    if (left.length > 0) queue.push(left);
  }
}

/** Runs the files in a process of their own; returns those that it did not come to. */
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

/** The largest limit of the files. */
function secondsMaxOf(group) {
  return Math.max(
    ...group.map((file) => TEST_SECONDS_MAX[tier === 'nightly' ? tier : tierOf(file)]),
  );
}

/** Keeps the times of files that did not run. */
function recordTimes(seconds) {
  const known = new Set(listTests(options.root, { tier: 'nightly', parts: [], except: [] }));
  const all = Object.entries({ ...times, ...seconds }).filter(([file]) => known.has(file));
  const sorted = all.sort(([left], [right]) => (left < right ? -1 : 1));
  writeFileSync(timesPath, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}

/** `--random` without a seed gets one. */
function withSeed(words) {
  const at = words.indexOf('--random');
  if (at === -1 || /^\d+$/.test(words[at + 1] ?? '')) return words;
  return words.toSpliced(at + 1, 0, String(Math.floor(Math.random() * 1e6)));
}

function fail(message) {
  console.error(`test: ${message}`);
  process.exit(1);
}
