// Runs of text: merging gives what building gives, and terms are found by their bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildTextRun, findTerm, mergeTextRuns } from '../../src/inverted/text-run.js';
import { columnOf, createRandom, testSeed } from '../database/harness.js';

const SEED = testSeed();
const SETTINGS = { fields: ['a'], language: null, stopWords: [] };
const WORDS = ['z', 'Z', 'é', '￿', '𝒳', 'ab', 'a', 'b1', '中文'];

function randomJson(count: number) {
  const random = createRandom(SEED);
  return columnOf(
    Array.from({ length: count }, () => {
      const length = Math.floor(random() * 6);
      const words = Array.from({ length }, () => WORDS[Math.floor(random() * WORDS.length)]);
      return JSON.stringify({ a: words.join(' ') });
    }),
  );
}

test(`merging runs gives the same run as building all of their rows (seed ${SEED})`, () => {
  const json = randomJson(1_500);
  const whole = buildTextRun(json, { from: 0, to: 1_500 }, SETTINGS);
  const cuts = [0, 1, 700, 700, 1_100, 1_500];
  const runs = cuts.slice(1).map((to, i) => buildTextRun(json, { from: cuts[i]!, to }, SETTINGS));
  assert.deepEqual(mergeTextRuns(runs), whole);
  assert.deepEqual(mergeTextRuns([mergeTextRuns(runs.slice(0, 3)), ...runs.slice(3)]), whole);
});

test('terms are in the order of their bytes, and each is found', () => {
  const run = buildTextRun(randomJson(400), { from: 0, to: 400 }, SETTINGS);
  const { offsets, bytes } = run.terms;
  const terms = Array.from({ length: run.termCount }, (_, i) =>
    Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])),
  );
  assert.deepEqual(terms.toSorted(Buffer.compare), terms);
  assert.equal(terms.length > 5, true);
  for (const [i, term] of terms.entries()) {
    assert.equal(findTerm(run, term.toString('latin1')), i);
  }
  assert.deepEqual(
    ['', 'a\0', 'zz', Buffer.from('𝒴').toString('latin1')].map((term) => findTerm(run, term)),
    [-1, -1, -1, -1],
  );
});

test('only strings at the paths, and strings in arrays there, are indexed', () => {
  const json = columnOf([
    '{"a":"x y"}',
    '{"a":["x",["q"],3,{"a":"q"},"z x"]}',
    '{"a":{"b":"q"},"b":"q"}',
    '{"a":null}',
  ]);
  const run = buildTextRun(json, { from: 0, to: 4 }, SETTINGS);
  assert.deepEqual([...run.lengths], [2, 3, 0, 0]);
  assert.equal(findTerm(run, 'q'), -1);
  const index = findTerm(run, 'x');
  const [start, end] = [run.postingStarts[index], run.postingStarts[index + 1]];
  assert.deepEqual([...run.rows.subarray(start, end)], [0, 1]);
  assert.deepEqual([...run.counts.subarray(start, end)], [1, 2]);
});
