// A simulation repeats exactly, and finds nothing in a short run; CI simulates dozens of seeds.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SeedThread } from './seed-threads.js';

/** One with few events. */
const SEED = 14;

it('a seed leads to the same events again, also after another one in the same thread', async () => {
  const [first, second] = [new SeedThread(), new SeedThread()];
  try {
    const once = await first.simulate(SEED);
    await second.simulate(SEED + 1);
    const again = await second.simulate(SEED);
    assert.deepEqual(once.failures, []);
    assert.equal(again.digest, once.digest);
    assert.deepEqual(again.trace, once.trace);
    assert.equal(again.eventCount, once.eventCount);
  } finally {
    await first.close();
    await second.close();
  }
});
