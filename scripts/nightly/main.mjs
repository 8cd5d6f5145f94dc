// The tests that take hours, with new random numbers each time. A part that has passed for the tree as it is, uncommitted
// changes included, is not repeated, so that a run that was interrupted goes on where it was.
//
//   npm run test:nightly                         all parts, in two to three hours
//   … -- --list                                  the parts, their minutes, and what they last gave
//   … -- --part fuzz --part soak                 only these
//   … -- --changed [BASE]                        only those that guard what has changed since BASE (default main)
//   … -- --minutes 60                            all chosen parts in about so long, as far as they can be shortened
//   … -- --seed N                                the random numbers of an earlier run
//   … -- --again                                 also parts that have passed
//   … -- --may-skip gpu-architectures,console    parts that may be left out for lack of a tool
//   … -- --publish                               writes the table of results into docs/reliability.md
//
// Writes build/nightly: state.json, a log per part, report.md. Exits with 1 when a part failed, or was left out and may not.

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
  fail(`--seed has ${options.seed}; expected a whole number from 1`);
const minutesWanted = options.minutes === undefined ? undefined : Number(options.minutes);
if (minutesWanted !== undefined && !(minutesWanted > 0))
  fail(`--minutes has ${options.minutes}; expected a number above 0`);
mkdirSync(FOLDER, { recursive: true });
/** By name of a part: what it last gave. */
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
    fail(
      `there is no part ${unknown}; expected one of ${PARTS.map(({ name }) => name).join(', ')}`,
    );
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
    console.log(`${name}: has passed for this tree`);
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
    `${chosen.length - bad.length} of ${chosen.length} parts are as they should be; ${FOLDER}/report.md has all`,
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

/** By what the minutes of scaled parts are multiplied. */
function scaleOf(parts) {
  if (minutesWanted === undefined) return 1;
  const sumOf = (some) => some.reduce((sum, { minutes }) => sum + minutes, 0);
  const fixed = sumOf(parts.filter(({ isScaled }) => !isScaled));
  const scaled = sumOf(parts.filter(({ isScaled }) => isScaled));
  // What cannot be shortened may take longer than all of it.
  return Math.max(0.05, (minutesWanted - fixed) / scaled);
}

/** The hash of all files that git tracks or could track, as they are. */
function treeOfFiles() {
  const env = { ...process.env, GIT_INDEX_FILE: join(process.cwd(), FOLDER, 'index') };
  execFileSync('git', ['add', '--all'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return execFileSync('git', ['write-tree'], { env, encoding: 'utf8' }).trim();
}

/** Committed or not. */
function changedPaths(base) {
  const committed = git('diff', '--name-only', git('merge-base', base, 'HEAD'));
  const untracked = git('ls-files', '--others', '--exclude-standard');
  return `${committed}\n${untracked}`.split('\n').filter((path) => path !== '');
}

function git(...words) {
  return execFileSync('git', words, { encoding: 'utf8' }).trim();
}

/** `--changed` without a base gets one. */
function withBase(words) {
  const at = words.indexOf('--changed');
  if (at === -1 || (words[at + 1] ?? '--').startsWith('--') === false) return words;
  return words.toSpliced(at + 1, 0, BASE);
}

function fail(message) {
  console.error(`nightly: ${message}`);
  process.exit(2);
}
