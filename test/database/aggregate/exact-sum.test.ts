import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExactSum, quotientOf } from '../../../src/database/aggregate/exact-sum.js';
import { createRandom, testSeed } from '../harness.js';

function sumOf(values: readonly number[], count = 1): number {
  const sum = new ExactSum();
  for (const value of values) sum.add(value);
  return quotientOf(sum.total, count);
}

test('a sum is that of the exact values, rounded once', () => {
  assert.equal(sumOf([]), 0);
  assert.equal(sumOf([0.1, 0.2]), 0.30000000000000004);
  assert.equal(sumOf([1e100, 1, -1e100]), 1);
  assert.equal(sumOf([2 ** 53, 1]), 2 ** 53);
  assert.equal(sumOf([2 ** 53, 1, 2 ** -60]), 2 ** 53 + 2);
  assert.equal(sumOf([2 ** 53 + 2, 1]), 2 ** 53 + 4);
  assert.equal(sumOf([Number.MIN_VALUE, Number.MIN_VALUE]), 2 * Number.MIN_VALUE);
  assert.equal(sumOf([-1.5, -2.25]), -3.75);
});

test('a sum beyond float64 is the greatest number; a mean of such numbers is exact', () => {
  const { MAX_VALUE } = Number;
  assert.equal(sumOf([MAX_VALUE, MAX_VALUE]), MAX_VALUE);
  assert.equal(sumOf([-MAX_VALUE, -MAX_VALUE]), -MAX_VALUE);
  assert.equal(sumOf([MAX_VALUE, MAX_VALUE], 2), MAX_VALUE);
});

test('a mean is the nearest float64 of the exact quotient', () => {
  assert.equal(sumOf([1, 0, 0], 3), 1 / 3);
  assert.equal(sumOf([2, 0, 0], 3), 2 / 3);
  assert.equal(sumOf([-10, 0, 0], 3), -10 / 3);
  assert.equal(sumOf([5 * Number.MIN_VALUE, 0], 2), 2 * Number.MIN_VALUE);
  assert.equal(sumOf([7 * Number.MIN_VALUE, 0], 2), 4 * Number.MIN_VALUE);
});

test('the order of values does not change a sum', () => {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = createRandom(seed);
  for (let round = 0; round < 50; round++) {
    const values = Array.from(
      { length: 200 },
      () => (random() - 0.5) * 2 ** Math.floor(random() * 200 - 100),
    );
    const shuffled = values
      .map((value) => ({ value, key: random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ value }) => value);
    assert.equal(sumOf(values), sumOf(shuffled));
    // Two equal halves with opposite signs cancel.
    assert.equal(sumOf([...values, ...shuffled.map((value) => -value), 0.5]), 0.5);
  }
});

test('sums of integers agree with integer arithmetic beyond a flush of the bins', () => {
  const count = 2 ** 20 + 3;
  const sum = new ExactSum();
  let expected = 0n;
  for (let i = 0; i < count; i++) {
    const value = (i % 2 === 0 ? 1 : -1) * (2 ** 50 + i);
    sum.add(value);
    expected += BigInt(value);
  }
  assert.equal(quotientOf(sum.total, 1), Number(expected));
});
