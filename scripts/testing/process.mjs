// A process that runs test files as suites of Node's test runner. It reports events as lines on a pipe, is killed when
// a test takes too long, and takes every process it started with it.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { compiledPath } from './files.mjs';
import { killIfRunning, processesWith } from './marked-processes.mjs';

const PROGRAM = fileURLToPath(new URL('./program.mjs', import.meta.url));
const REPORTER = new URL('./reporter.mjs', import.meta.url).href;
/** Environment variable that identifies all descendants of a test process; nothing else does. */
const MARK = 'SAGITTA_TEST_PROCESS';
/** Characters kept of the output of a process. */
const OUTPUT_CHARS_MAX = 200_000;

let processCount = 0;

export class TestProcess {
  /** Resolves with the results once the process and its descendants have ended. */
  result;
  #child;
  #mark = `${process.pid}.${processCount++}`;
  #files;
  #secondsMax;
  #output = '';
  #watch;
  /** Names of the running and of the reported tests, outermost first. */
  #running = [];
  #reported = [];
  #tests = [];
  #cpuOfTests = [];
  #starts = [];
  #ended = new Set();
  #overdue = null;

  /** `secondsMax` limits each test, not the process. */
  constructor(files, { root, patterns, environment, secondsMax, hasSourceMaps }) {
    this.#files = files;
    this.#secondsMax = secondsMax;
    const words = [
      ...(hasSourceMaps ? ['--enable-source-maps'] : []),
      `--test-reporter=${REPORTER}`,
      ...patterns.map((pattern) => `--test-name-pattern=${pattern}`),
      PROGRAM,
      ...files.flatMap((file) => [file, compiledPath(root, file)]),
    ];
    this.#child = spawn(process.execPath, words, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment, [MARK]: this.#mark },
      // A process group of its own, so that a signal reaches all of it.
      detached: true,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        this.#output = (this.#output + text).slice(-OUTPUT_CHARS_MAX);
      });
    }
    const lines = createInterface({ input: this.#child.stdio[3] });
    lines.on('line', (line) => this.#onEvent(JSON.parse(line)));
    this.#restartWatch();
    this.result = this.#follow(lines);
  }

  /** Kills the process and its descendants. */
  end() {
    if (this.#child.pid !== undefined) killIfRunning(-this.#child.pid);
    for (const { pid } of this.#findLeftovers()) killIfRunning(pid);
  }

  async #follow(lines) {
    const read = new Promise((resolve) => lines.once('close', resolve));
    const [code, signal] = await new Promise((resolve) => {
      this.#child.once('error', (error) => resolve([error.message, null]));
      this.#child.once('exit', (...ending) => resolve(ending));
    });
    clearTimeout(this.#watch);
    const leftovers = this.#findLeftovers();
    this.end();
    await read;
    const last = this.#running.join(' › ');
    const isWhole = this.#files.every((file) => this.#ended.has(file));
    const hasFailed = this.#tests.some(({ error }) => error !== undefined);
    let crash = null;
    if (this.#overdue !== null) crash = `${this.#overdue} took more than ${this.#secondsMax} s`;
    else if (!isWhole)
      crash = `the process ended with ${signal ?? code} during ${last || 'its start'}`;
    else if (code !== 0 && !hasFailed)
      crash = `the process ended with ${signal ?? code} after its tests`;
    // The file in which the process ended early does not run again with the others.
    const guilty = isWhole ? null : (this.#running[0] ?? this.#files[0]);
    return {
      files: this.#files,
      tests: this.#tests,
      cpuSeconds: this.#cpuSecondsOfFiles(),
      output: this.#output,
      leftovers: leftovers.map(({ command }) => command),
      crash: crash && { file: guilty ?? this.#files[0], message: crash },
      filesLeft: isWhole
        ? []
        : this.#files.filter((file) => !this.#ended.has(file) && file !== guilty),
    };
  }

  #onEvent({ type, ...event }) {
    this.#restartWatch();
    switch (type) {
      case 'file':
        this.#starts.push(event);
        break;
      case 'cpu':
        this.#cpuOfTests.push(event);
        break;
      case 'begin':
        this.#running.length = event.depth;
        this.#running[event.depth] = event.name;
        break;
      case 'complete':
        if (event.depth === 0) this.#ended.add(event.name);
        break;
      case 'notice':
        this.#output += `${event.message}\n`;
        break;
      case 'start':
        this.#reported.length = event.depth;
        this.#reported[event.depth] = event.name;
        break;
      case 'end':
        this.#tests.push({
          ...event,
          path: [...this.#reported],
          cpuSeconds: this.#cpuOf(event.name),
        });
        break;
    }
  }

  /** Matches by name only, since the hooks that measure a test know nothing else of it. */
  #cpuOf(name) {
    const at = this.#cpuOfTests.findIndex((found) => found.name === name);
    return at === -1 ? 0 : this.#cpuOfTests.splice(at, 1)[0].seconds;
  }

  /** CPU seconds from the start of each file to the start of the next, so that loading a module counts once. */
  #cpuSecondsOfFiles() {
    return Object.fromEntries(
      this.#starts
        .slice(0, -1)
        .map(({ name, seconds }, at) => [
          name,
          Math.round((this.#starts[at + 1].seconds - seconds) * 100) / 100,
        ]),
    );
  }

  #restartWatch() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.#overdue = this.#running.join(' › ') || 'the start';
      this.end();
    }, this.#secondsMax * 1_000);
  }

  /** Processes that tests have started and that are still running. */
  #findLeftovers() {
    return processesWith(MARK, this.#mark)
      .filter((pid) => pid !== this.#child.pid)
      .map((pid) => ({ pid, command: commandOf(pid) }))
      .filter(({ command }) => command !== '');
  }
}

/** The command line of a process, or an empty string if it has ended. */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').join(' ').trim();
  } catch {
    return '';
  }
}
