// Simulates clusters under faults, with fixed seeds and with new ones.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { testSeed } from '../../support/random.js';
import { consecutive, describeFailure, SeedThread, simulateAll } from './seed-threads.js';

const FIXED_COUNT = 12;
const NEW_COUNT = IS_NIGHTLY ? 300 : 12;
const THREADS = 2;
/** Lines of the trace that are shown for a failure. */
const LINES_MAX = 150;

async function assertNoFailure(first: number, count: number): Promise<void> {
  const failed: string[] = [];
  await simulateAll(consecutive(first, count), THREADS, (result) => {
    if (result.failures.length > 0) failed.push(describeFailure(result, LINES_MAX));
    return true;
  });
  assert.equal(failed.join('\n'), '', 'simulation/main.js --seed repeats this');
}

it(`clusters lose nothing and recover in ${FIXED_COUNT} known simulations`, async () => {
  await assertNoFailure(1, FIXED_COUNT);
});

// Seeds that no other run uses.
const newSeed = 1_000 * testSeed();
it(`clusters lose nothing and recover in ${NEW_COUNT} simulations from seed ${newSeed} on`, async () => {
  await assertNoFailure(newSeed, NEW_COUNT);
});

it('a seed leads to the same events in another thread and after other seeds', async () => {
  const threads = [new SeedThread(), new SeedThread()] as const;
  try {
    for (const seed of [1, 2, 3]) {
      const first = await threads[0].simulate(seed);
      await threads[1].simulate(seed + 10);
      const second = await threads[1].simulate(seed);
      assert.equal(second.digest, first.digest, `seed ${seed}`);
      assert.equal(second.eventCount, first.eventCount);
    }
  } finally {
    for (const thread of threads) await thread.close();
  }
});
