// The check of patterns before they are compiled: no short pattern takes long.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RE2JS } from 're2js';
import { checkPattern, countAtoms } from '../../src/filter/pattern.js';
import { createRandom } from '../database/harness.js';
import { IS_NIGHTLY } from '../support/nightly.js';

const MAX = 1_000;
const PATTERN_COUNT = IS_NIGHTLY ? 200_000 : 8_000;
const countOf = (pattern: string) => {
  const checked = checkPattern(pattern, MAX);
  return 'problem' in checked ? checked.problem : checked.instructionCount;
};

test('a pattern within the limit has the size of its program', () => {
  for (const pattern of [
    '',
    'abc',
    '(a|b){20}',
    '[a-z]{1,64}@[a-z]{1,255}',
    '\\x{1000}',
    '\\pL{3}',
  ]) {
    assert.equal(countOf(pattern), RE2JS.compile(pattern).programSize(), pattern);
  }
});

test('repetitions that are too large are found without compiling them', () => {
  for (const [pattern, least] of [
    ['a{1000}'.repeat(100), 100_000],
    [`(?:${'a'.repeat(50)}){30}(?i){30}`, 45_000],
    [`(?:${'a'.repeat(50)}){30}(?i)+?(?i){30}`, 45_000],
    [`(?:${'a'.repeat(50)}){30}\\Q\\E(?s-i){30}`, 45_000],
    ['((a|b)?){500}'.repeat(60), 150_000],
    ['(x[)(\\]{2}]y){500}z{900}', 2_400],
    ['(?:\\Q(((\\E|[]]){400}', 2_000],
    ['(a{10,}[[:alpha:])]){100}', 1_100],
  ] as const) {
    const count = countOf(pattern);
    assert.ok(Number(count) >= least, `${pattern.slice(0, 40)}: ${count}`);
  }
});

test('what looks like a repetition inside a class, a quotation or an escape is not one', () => {
  for (const pattern of ['[a{900}]{5}', '\\Qa{900}\\E{5}', '\\x{900}{5}', 'a{,900}', 'a{9']) {
    assert.ok(Number(countOf(pattern)) < 100, pattern);
  }
});

test('random patterns compile to at most eight instructions per counted atom', (t) => {
  const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`SAGITTA_TEST_SEED=${seed}`);
  const random = createRandom(seed);
  // biome-ignore format: a list
  const pieces = [
    'a', '.', '\\d', '\\pL', '[^x]', '[])(]', '[[:digit:](]', '(', '(', ')', ')', '|', '*', '+?', '{7}', '{2,9}', '{30}',
    '^', '\\b', '(?i)', '(?:', '\\Q(\\E', '\\Q\\E', '\\(', '\\x{41}', '(?P<n>', '[\\]{5}]', '{', '\\',
  ];
  let compiledCount = 0;
  for (let i = 0; i < PATTERN_COUNT; i++) {
    const count = 1 + Math.floor(random() * 16);
    const pattern = Array.from(
      { length: count },
      () => pieces[Math.floor(random() * pieces.length)],
    );
    const source = pattern.join('');
    if (typeof countOf(source) === 'string' || countAtoms(source) > MAX) continue;
    compiledCount++;
    const size = RE2JS.compile(source).programSize();
    assert.ok(size <= 8 * countAtoms(source) + 8, `${source}: ${size} instructions`);
  }
  assert.ok(compiledCount > PATTERN_COUNT / 20, `only ${compiledCount} patterns compiled`);
});
