import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KthLargest } from '../../../src/engine/tensor/exact-top-k-selector.js';
import { createRandom, randomInt, SEED } from '../blocks.js';

describe('the k-th largest number', () => {
  it('agrees with sorting, and is −Infinity for fewer than k numbers', () => {
    const random = createRandom(SEED);
    for (let round = 0; round < 100; round++) {
      const k = 1 + randomInt(random, 20);
      const kthLargest = new KthLargest(k);
      const added: number[] = [];
      for (let i = 0; i < 60; i++) {
        const value = randomInt(random, 30) / 4;
        kthLargest.add(value);
        added.push(value);
        added.sort((a, b) => b - a);
        assert.equal(kthLargest.value, added[k - 1] ?? Number.NEGATIVE_INFINITY, `seed ${SEED}`);
      }
    }
  });

  it('is −Infinity for k = 0', () => {
    const kthLargest = new KthLargest(0);
    kthLargest.add(1);
    assert.equal(kthLargest.value, Number.NEGATIVE_INFINITY);
  });
});
