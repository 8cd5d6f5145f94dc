// A simulation repeats exactly; CI simulates dozens of seeds.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SeedThread } from './seed-threads.js';

/** One with few events. */
const SEED = 68;

it('a seed leads to the same events again', async () => {
  const thread = new SeedThread();
  try {
    const first = await thread.simulate(SEED);
    const second = await thread.simulate(SEED);
    assert.deepEqual(first.failures, []);
    assert.equal(second.digest, first.digest);
    assert.deepEqual(second.trace, first.trace);
  } finally {
    await thread.close();
  }
});
