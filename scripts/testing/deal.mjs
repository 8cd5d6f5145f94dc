// Distributes test files to processes by the CPU time they took in earlier runs. Files in one folder load the same
// modules, so they share a process. Small folders share one, too: starting a process and loading the server takes a
// second.

import { dirname } from 'node:path';
import { tierOf } from './files.mjs';

/** A process that takes more CPU seconds than this would run alone at the end. */
const GROUP_SECONDS_MAX = 14;
/** A folder that takes fewer CPU seconds shares a process with the following folders. */
const FOLDER_SECONDS_MIN = 7;
/** Assumed for a file without a recorded time. */
const UNKNOWN_SECONDS = 1;

/** Returns groups of files in starting order: the longest first, or shuffled if `random` is a seed. */
export function dealFiles(files, { times, random }) {
  const secondsOf = (file) => times[file] ?? UNKNOWN_SECONDS;
  const groups = [];
  const add = (names) => groups.push({ files: names, seconds: sum(names.map(secondsOf)) });
  // Tests of CI and the nightly run kill processes and fill memory, so each of these files runs in its own process.
  for (const file of files.filter((name) => tierOf(name) !== 'quick')) add([file]);
  const quick = files.filter((name) => tierOf(name) === 'quick');
  let open = [];
  for (const folder of new Set(quick.map(dirname))) {
    const own = quick.filter((file) => dirname(file) === folder);
    for (const part of cut(own, secondsOf)) {
      open.push(...part);
      if (sum(open.map(secondsOf)) < FOLDER_SECONDS_MIN) continue;
      add(open);
      open = [];
    }
  }
  if (open.length > 0) add(open);
  if (random === undefined) groups.sort((left, right) => right.seconds - left.seconds);
  else
    shuffle(
      groups,
      groups.map(({ files: own }) => own),
      createRandom(Number(random)),
    );
  return groups.map(({ files: own }) => own);
}

/** Splits the files of a folder into groups that take about the same time and hardly exceed the limit of a group. */
function cut(files, secondsOf) {
  const total = sum(files.map(secondsOf));
  const count = Math.max(1, Math.ceil(total / GROUP_SECONDS_MAX));
  const parts = Array.from({ length: count }, () => ({ files: [], seconds: 0 }));
  for (const file of files.toSorted((left, right) => secondsOf(right) - secondsOf(left))) {
    const least = parts.reduce((found, part) => (part.seconds < found.seconds ? part : found));
    least.files.push(file);
    least.seconds += secondsOf(file);
  }
  return parts.map((part) => part.files.sort()).filter((part) => part.length > 0);
}

/** Shuffles the groups, and the files within each. */
function shuffle(groups, lists, random) {
  for (const list of [groups, ...lists]) {
    for (let last = list.length - 1; last > 0; last--) {
      const other = Math.floor(random() * (last + 1));
      [list[last], list[other]] = [list[other], list[last]];
    }
  }
}

/** A linear congruential generator: the same seed gives the same order. */
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
