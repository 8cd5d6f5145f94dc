// The ordered map compared with a plain map over random operations.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { OrderedMap } from '../../src/storage/ordered-map.js';
import { testSeed } from '../support/random.js';

it('contains the entries of a plain map in key order', () => {
  const key = fc.integer({ min: 0, max: 3_000 }).map((value) => `k${value}`);
  const operation = fc.record({ key, isRemoval: fc.boolean() });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 2_500, size: 'max' }), key, key, (all, a, b) => {
      const map = new OrderedMap<number>();
      const model = new Map<string, number>();
      for (const [i, { key, isRemoval }] of all.entries()) {
        const before = isRemoval ? map.delete(key) : map.set(key, i);
        assert.equal(before, model.get(key));
        if (isRemoval) model.delete(key);
        else model.set(key, i);
      }
      const copy = new OrderedMap(map);
      map.set('new', 0);
      const wanted = [...model].filter(([each]) => each >= a && each < b);
      wanted.sort(([first], [second]) => (first < second ? -1 : 1));
      assert.deepEqual([...copy.entries(a, b)], wanted);
      assert.equal(copy.count(a, b), wanted.length);
      assert.equal(copy.size, model.size);
      assert.equal(copy.get('new'), undefined);
      for (const [each, value] of model) assert.equal(copy.get(each), value);
    }),
    { numRuns: 30, seed: testSeed() },
  );
});

it('continues after the last entry read if it changes during an iteration', () => {
  const map = new OrderedMap<number>();
  const keyOf = (i: number) => String(i).padStart(5, '0');
  for (let i = 0; i < 4_000; i += 2) map.set(keyOf(i), i);
  const read: string[] = [];
  for (const [key] of map.entries('', '~')) {
    read.push(key);
    map.delete(key);
    map.set(`${key}a`, 0);
  }
  const own = read.filter((key) => !key.endsWith('a'));
  assert.deepEqual(
    own,
    Array.from({ length: 2_000 }, (_, i) => keyOf(2 * i)),
  );
});
