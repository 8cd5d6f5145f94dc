// Formats the results of the nightly run as Markdown: a table, and the end of the log of each failed part.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PARTS } from './parts.mjs';

const LOG_LINES = 40;
const DOCUMENT = join('docs', 'reliability.md');
const [BEGIN, END] = ['<!-- nightly: begin -->', '<!-- nightly: end -->'];

/** @param state date, commit, seed, seconds and outcome by name of the part */
export function reportOf(state) {
  const failed = PARTS.filter(
    ({ name }) => state[name] !== undefined && /^(failed|did)/.test(state[name].outcome),
  );
  const ends = failed.map(
    ({ name }) => `## ${name}\n\n${state[name].outcome}\n\n\`\`\`\n${endOfLog(name)}\n\`\`\`\n`,
  );
  return ['# Nightly run', tableOf(state), ...ends].join('\n\n');
}

/** Replaces the table in docs/reliability.md. */
export function publish(state) {
  const text = readFileSync(DOCUMENT, 'utf8');
  const from = text.indexOf(BEGIN) + BEGIN.length;
  const to = text.indexOf(END);
  if (to < from) throw new Error(`Expected ${BEGIN} and ${END} in ${DOCUMENT}`);
  writeFileSync(DOCUMENT, `${text.slice(0, from)}\n${tableOf(state)}\n${text.slice(to)}`);
}

function tableOf(state) {
  const rows = PARTS.filter(({ name }) => state[name] !== undefined).map(({ name }) => {
    const { date, commit, seed, seconds, outcome } = state[name];
    // One word of the outcome; the report and the log contain the rest.
    return `| ${date} | ${commit} | ${name} | ${seed} | ${seconds} | ${outcome.split(':')[0]} |`;
  });
  return [
    '| date | commit | part | seed | seconds | outcome |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n');
}

function endOfLog(name) {
  const path = join('build', 'nightly', `${name}.log`);
  if (!existsSync(path)) return '';
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-LOG_LINES).join('\n');
}
