// Conditions on single strings, in any order of the strings.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STRING_TESTS } from '../../src/filter/string-tests.js';
import { createRandom } from '../database/harness.js';

test('a pattern is matched against strings in any order and from several buffers', () => {
  const random = createRandom(3);
  const columns = [
    Array.from({ length: 4_000 }, (_, i) => `name ${i}`),
    Array.from({ length: 4_000 }, (_, i) => (i % 700 === 5 ? `näme ${i}` : `name ${-i}`)),
  ].map((strings) => {
    const encoded = strings.map((string) => Buffer.from(string));
    const starts = [0];
    for (const { length } of encoded) starts.push(starts.at(-1)! + length);
    return { strings, bytes: Buffer.concat(encoded), starts };
  });
  const isMatch = STRING_TESTS.$regex('^n.me -?[0-9]*7$');
  for (let i = 0; i < 5_000; i++) {
    const { strings, bytes, starts } = columns[Math.floor(random() * 2)];
    const row = Math.floor(random() * strings.length);
    const expected = /^n.me -?[0-9]*7$/u.test(strings[row]);
    assert.equal(isMatch(bytes, starts[row], starts[row + 1]), expected, strings[row]);
  }
});
