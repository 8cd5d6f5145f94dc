// The report of a test run: prints a line per file, prints failures as they happen and again at the end, and decides
// whether the run has succeeded.

import { tierOf } from './files.mjs';

/** The report names a test above this. With --budget, the run fails if the test takes as much when it runs alone. */
const TEST_CPU_SECONDS_MAX = 1;
/** Processors differ, and the same one may take twice as long while other programs use the machine. */
const TOLERANCE = 3;
/** How many times its recorded seconds a file may take, and the seconds that any file may take. */
const GROWTH_MAX = 2;
const FILE_CPU_SECONDS_MIN = 4;
/** Files with so many recorded seconds tell how slow the machine is now, if there are so many of them. */
const MEASURED_SECONDS_MIN = 0.5;
const MEASURED_FILES_MIN = 20;
const EXPENSIVE_SHOWN = 20;

export class Report {
  #skipPattern;
  #isBudgetKept;
  #startedAt = performance.now();
  #passCount = 0;
  #skipped = [];
  /** Failures of the first run, by file. */
  #failures = new Map();
  /** Tests that failed among others and passed alone. */
  #flaky = [];
  #failed = [];
  #leftovers = [];
  #tests = [];
  /** Tests and files over the budget even when they run alone: path, CPU seconds and limit. */
  #overBudget = [];
  #times;
  #signal = null;
  /** CPU seconds by file. */
  cpuSeconds = {};

  /** `times`: recorded CPU seconds by file. */
  constructor({ skipPattern, isBudgetKept, times }) {
    this.#times = times;
    this.#skipPattern = skipPattern === undefined ? null : new RegExp(skipPattern);
    this.#isBudgetKept = isBudgetKept;
  }

  get isSuccess() {
    return this.#failed.length === 0 && this.#signal === null;
  }

  /** Adds a result. `isAlone` marks the second run of a file that failed or took too long. */
  add(result, { isAlone }) {
    const failures = failuresOf(result);
    for (const file of result.files) {
      if (result.filesLeft.includes(file)) continue;
      // A skipped suite contains no tests.
      const own = result.tests.filter(
        (test) => test.path[0] === file && (!test.isSuite || test.skip !== undefined),
      );
      const found = failures.filter((failure) => failure.file === file);
      if (isAlone) this.#judge(file, found, own, result.cpuSeconds[file] ?? 0);
      else {
        this.#record(file, found, own);
        const whole = result.tests.find((test) => test.depth === 0 && test.name === file);
        printFile(file, { failures: found, testCount: own.length, seconds: whole?.seconds ?? 0 });
      }
    }
    if (isAlone) return;
    Object.assign(this.cpuSeconds, result.cpuSeconds);
    this.#leftovers.push(...result.leftovers.map((command) => ({ command, files: result.files })));
  }

  #record(file, failures, tests) {
    const passed = tests.filter((test) => test.error === undefined && test.skip === undefined);
    this.#passCount += passed.length;
    this.#tests.push(...passed.map((test) => ({ ...test, file })));
    for (const { path, skip } of tests) {
      if (skip !== undefined) this.#skipped.push({ path: path.join(' › '), reason: skip });
    }
    if (failures.length > 0) this.#failures.set(file, failures);
  }

  /** Files to run again, alone: those with failures, and those over the budget. */
  filesToRepeat() {
    if (this.#signal !== null) return [];
    const expensive = this.#isBudgetKept
      ? Object.entries(this.cpuSeconds).flatMap(([file, seconds]) => {
          const own = this.#tests.filter((test) => test.file === file);
          return this.#beyondBudget(file, own, seconds).length > 0 ? [file] : [];
        })
      : [];
    return [...new Set([...this.#failures.keys(), ...expensive])];
  }

  /** The median ratio of the CPU seconds of files to their recorded ones, at least 1: other programs slow a machine. */
  #slowdown() {
    const ratios = Object.entries(this.cpuSeconds)
      .filter(([file]) => this.#times[file] >= MEASURED_SECONDS_MIN)
      .map(([file, seconds]) => seconds / this.#times[file])
      .sort((left, right) => left - right);
    return ratios.length < MEASURED_FILES_MIN ? 1 : Math.max(1, ratios[ratios.length >> 1]);
  }

  /** The tests that exceed their CPU time, and the file itself if it does. */
  #beyondBudget(file, tests, seconds) {
    if (tierOf(file) !== 'quick') return [];
    const slowdown = this.#slowdown();
    const limit = TEST_CPU_SECONDS_MAX * TOLERANCE * slowdown;
    const found = tests
      .filter(({ cpuSeconds }) => cpuSeconds > limit)
      .map(({ path, cpuSeconds }) => ({ path: path.join(' › '), cpuSeconds, limit }));
    const recorded = this.#times[file] ?? 0;
    const fileLimit = Math.max(FILE_CPU_SECONDS_MIN, GROWTH_MAX * recorded) * slowdown;
    if (seconds > fileLimit) found.push({ path: file, cpuSeconds: seconds, limit: fileLimit });
    return found;
  }

  #judge(file, failures, tests, cpuSeconds) {
    for (const failure of failures) {
      console.log('\nfailed twice:');
      printFailure(failure);
    }
    this.#failed.push(...failures.map(({ path, error }) => ({ path, error })));
    const isFailing = (path) => failures.some((failure) => failure.path === path);
    const first = this.#failures.get(file) ?? [];
    const passedNow = first.filter(({ path, isTest }) => isTest && !isFailing(path));
    this.#passCount += passedNow.length;
    if (failures.length === 0) this.#flaky.push(...first.map(({ path }) => path));
    else this.#flaky.push(...passedNow.map(({ path }) => path));
    if (this.#isBudgetKept) this.#overBudget.push(...this.#beyondBudget(file, tests, cpuSeconds));
  }

  interrupted(signal) {
    this.#signal = signal;
  }

  print() {
    for (const { path, cpuSeconds, limit } of this.#overBudget) {
      this.#failed.push({
        path,
        error: `Expected at most ${limit.toFixed(1)} CPU seconds alone; found ${cpuSeconds.toFixed(1)}. Make it cheaper, move tests to a *.ci.test.ts file or, if the time is justified, record it: node scripts/test.mjs --record ${path.split(' › ')[0]}`,
      });
    }
    for (const { path, reason } of this.#skipped.filter((skip) => !this.#maySkip(skip))) {
      this.#failed.push({
        path,
        error: `skipped for a reason that this run does not allow: ${reason}`,
      });
    }
    for (const { command, files } of this.#leftovers) {
      this.#failed.push({ path: files.join(', '), error: `left a process behind: ${command}` });
    }
    this.#printExpensive();
    if (this.#skipped.length > 0) {
      console.log('\nskipped:');
      for (const [reason, count] of countBy(this.#skipped)) console.log(`  ${count} × ${reason}`);
    }
    for (const path of this.#flaky) console.log(`\nflaky (passed when run alone): ${path}`);
    for (const { path, error } of this.#failed) {
      console.log(`\n✖ ${path}\n  ${error.split('\n').slice(0, 12).join('\n  ')}`);
    }
    if (this.#signal !== null) console.log(`\nended by ${this.#signal}`);
    const seconds = ((performance.now() - this.#startedAt) / 1_000).toFixed(0);
    const cpu = Object.values(this.cpuSeconds).reduce((sum, value) => sum + value, 0);
    console.log(
      `\n${seconds} s, ${cpu.toFixed(0)} CPU seconds in tests; ${this.#flaky.length} flaky`,
    );
    console.log(
      `${this.#passCount} passed, ${this.#failed.length} failed, ${this.#skipped.length} skipped`,
    );
  }

  /** CPU seconds of each file and of each test, the most expensive test first. */
  toJson() {
    const tests = this.#tests
      .map(({ path, cpuSeconds }) => [Math.round(cpuSeconds * 100) / 100, path.join(' › ')])
      .sort(([left], [right]) => right - left);
    return JSON.stringify({ files: this.cpuSeconds, tests }, null, 1);
  }

  #maySkip({ reason }) {
    return this.#skipPattern === null || this.#skipPattern.test(reason);
  }

  #printExpensive() {
    const expensive = this.#tests
      .filter(({ cpuSeconds }) => cpuSeconds > TEST_CPU_SECONDS_MAX)
      .sort((left, right) => right.cpuSeconds - left.cpuSeconds);
    if (expensive.length === 0) return;
    console.log(`\n${expensive.length} tests took more than ${TEST_CPU_SECONDS_MAX} CPU second:`);
    for (const { path, cpuSeconds } of expensive.slice(0, EXPENSIVE_SHOWN)) {
      console.log(`  ${cpuSeconds.toFixed(1)}  ${path.join(' › ')}`);
    }
  }
}

/** The failures in a process: failed tests, and its crash if it crashed. */
function failuresOf({ tests, crash, output }) {
  const failures = tests
    // A suite or test also fails when a test inside it does, which is reported on its own.
    .filter((test) => test.error !== undefined && test.failureType !== 'subtestsFailed')
    .filter((test) => test.todo === undefined)
    .map(({ path, error, isSuite }) => ({
      file: path[0],
      path: path.join(' › '),
      isTest: !isSuite,
      error,
      output,
    }));
  if (crash !== null) {
    failures.push({
      file: crash.file,
      path: crash.file,
      isTest: false,
      error: crash.message,
      output,
    });
  }
  return failures;
}

function printFile(file, { failures, testCount, seconds }) {
  const mark = failures.length > 0 ? '✖' : '✔';
  console.log(`${mark} ${file}: ${testCount} tests, ${seconds.toFixed(1)} s`);
  if (failures.length === 0) return;
  for (const failure of failures) printFailure(failure);
  console.log(`  ${file} will run again, alone, at the end\n`);
}

function printFailure({ path, error, output }) {
  console.log(`\n✖ ${path}\n  ${error.replaceAll('\n', '\n  ')}`);
  const printed = output.trim().split('\n').slice(-40);
  if (printed[0] !== '') console.log(`  its process printed:\n    ${printed.join('\n    ')}`);
}

/** The number of skipped tests by reason. */
function countBy(skips) {
  const counts = new Map();
  for (const { reason } of skips) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return counts;
}
