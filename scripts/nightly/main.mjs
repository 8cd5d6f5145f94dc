// Runs the tests that take hours, with a new seed each time. A part that has passed for the current tree, uncommitted
// changes included, is not repeated, so that an interrupted run continues where it stopped.
//
//   npm run test:nightly                         runs all parts, in two to three hours
//   … -- --list                                  lists the parts with their minutes and last outcomes
//   … -- --part fuzz --part soak                 runs only these parts
//   … -- --changed [BASE]                        runs only parts that guard paths changed since BASE (default main)
//   … -- --minutes 60                            shortens parts, where possible, to this time in total
//   … -- --seed N                                repeats the random numbers of an earlier run
//   … -- --again                                 repeats parts that have passed
//   … -- --may-skip gpu-architectures,console    allows these parts to be left out if a tool is missing
//   … -- --publish                               writes the table of results to docs/reliability.md
//
// Writes state.json, report.md and a log per part to build/nightly. Exits with 1 if a part failed or was left out
// without permission.

import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { endAll, executePart } from './execute.mjs';
import { PARTS, partsGuarding } from './parts.mjs';
import { publish, reportOf } from './report.mjs';
import { missingTool } from './tools.mjs';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
const FOLDER = join('build', 'nightly');
const STATE = join(FOLDER, 'state.json');
const BASE = 'main';

const { values: options } = parseArgs({
  args: withBase(process.argv.slice(2)),
  options: {
    list: { type: 'boolean', default: false },
    part: { type: 'string', multiple: true, default: [] },
    changed: { type: 'string' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: `${randomInt(1, 1_000_000)}` },
    again: { type: 'boolean', default: false },
    'may-skip': { type: 'string', default: '' },
    publish: { type: 'boolean', default: false },
  },
});
const seed = Number(options.seed);
if (!Number.isSafeInteger(seed) || seed < 1)
  fail(`Expected a whole number of at least 1 for --seed; found ${options.seed}`);
const minutesWanted = options.minutes === undefined ? undefined : Number(options.minutes);
if (minutesWanted !== undefined && !(minutesWanted > 0))
  fail(`Expected a number above 0 for --minutes; found ${options.minutes}`);
mkdirSync(FOLDER, { recursive: true });
/** The last outcome of each part, by name. */
const state = existsSync(STATE) ? JSON.parse(readFileSync(STATE, 'utf8')) : {};
const tree = treeOfFiles();
const commit = git('rev-parse', '--short', 'HEAD');
const chosen = chooseParts();
const isPassed = ({ name }) => state[name]?.tree === tree && state[name].outcome === 'passed';

if (options.publish) publish(state);
else if (options.list) list();
else await run();

function chooseParts() {
  const unknown = options.part.find((name) => !PARTS.some((part) => part.name === name));
  if (unknown !== undefined)
    fail(`Expected one of ${PARTS.map(({ name }) => name).join(', ')}; found ${unknown}`);
  const guarding =
    options.changed === undefined ? PARTS : partsGuarding(changedPaths(options.changed));
  return guarding.filter(({ name }) => options.part.length === 0 || options.part.includes(name));
}

function list() {
  for (const part of chosen) {
    const { outcome, seconds, commit: of } = state[part.name] ?? {};
    const last =
      outcome === undefined ? 'never run' : `${outcome.split(':')[0]} in ${seconds} s at ${of}`;
    console.log(
      `${part.name.padEnd(20)} ${String(part.minutes).padStart(3)} min  ${isPassed(part) ? 'passed' : last}`,
    );
  }
  console.log(`${chosen.reduce((sum, { minutes }) => sum + minutes, 0)} minutes in all`);
}

async function run() {
  const due = options.again ? chosen : chosen.filter((part) => !isPassed(part));
  for (const { name } of chosen.filter((part) => !due.includes(part)))
    console.log(`${name}: already passed for this tree`);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => {
      endAll();
      process.exit(130);
    });
  }
  if (due.length > 0) {
    console.log(`seed ${seed}`);
    const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
  const scale = scaleOf(due);
  for (const part of due) await runPart(part, part.isScaled ? part.minutes * scale : part.minutes);
  writeFileSync(join(FOLDER, 'report.md'), reportOf(state));
  const maySkip = options['may-skip'].split(',');
  const bad = chosen.filter(({ name }) => {
    const { outcome } = state[name];
    return outcome !== 'passed' && !(outcome.startsWith('left out') && maySkip.includes(name));
  });
  console.log(
    `${chosen.length - bad.length} of ${chosen.length} parts are fine; see ${FOLDER}/report.md`,
  );
  process.exitCode = bad.length > 0 ? 1 : 0;
}

async function runPart(part, minutes) {
  const { name } = part;
  const folder = join(FOLDER, name);
  mkdirSync(folder, { recursive: true });
  const log = join(FOLDER, `${name}.log`);
  const startedAt = Date.now();
  const missing = missingTool(part.needs);
  console.log(`── ${name}, about ${minutes.toFixed(1)} minutes, seed ${seed}, ${log}`);
  const outcome =
    missing === undefined
      ? await executePart(part, { seed, minutes, folder }, log)
      : `left out: ${missing}`;
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  state[name] = {
    date: new Date(startedAt).toISOString().slice(0, 10),
    commit,
    tree,
    seed,
    seconds,
    outcome,
  };
  writeFileSync(STATE, `${JSON.stringify(state, null, 2)}\n`);
  console.log(`   ${outcome}, ${seconds} s`);
}

/** The factor for the minutes of scaled parts. */
function scaleOf(parts) {
  if (minutesWanted === undefined) return 1;
  const sumOf = (some) => some.reduce((sum, { minutes }) => sum + minutes, 0);
  const fixed = sumOf(parts.filter(({ isScaled }) => !isScaled));
  const scaled = sumOf(parts.filter(({ isScaled }) => isScaled));
  // The fixed parts alone may take longer than the minutes wanted.
  return Math.max(0.05, (minutesWanted - fixed) / scaled);
}

/** The hash of all files in the working tree that git tracks or could track. */
function treeOfFiles() {
  const env = { ...process.env, GIT_INDEX_FILE: join(process.cwd(), FOLDER, 'index') };
  execFileSync('git', ['add', '--all'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return execFileSync('git', ['write-tree'], { env, encoding: 'utf8' }).trim();
}

/** Paths that have changed since the base, committed or not. */
function changedPaths(base) {
  const committed = git('diff', '--name-only', git('merge-base', base, 'HEAD'));
  const untracked = git('ls-files', '--others', '--exclude-standard');
  return `${committed}\n${untracked}`.split('\n').filter((path) => path !== '');
}

function git(...words) {
  return execFileSync('git', words, { encoding: 'utf8' }).trim();
}

/** Adds the default base to a `--changed` without one. */
function withBase(words) {
  const at = words.indexOf('--changed');
  if (at === -1 || (words[at + 1] ?? '--').startsWith('--') === false) return words;
  return words.toSpliced(at + 1, 0, BASE);
}

function fail(message) {
  console.error(`nightly: ${message}`);
  process.exit(2);
}
