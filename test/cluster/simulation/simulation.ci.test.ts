// Simulates clusters under faults: with fixed seeds, which have found bugs, and with new ones.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { testSeed } from '../../support/random.js';
import { consecutive, describeFailure, simulateAll } from './seed-threads.js';

const FIXED = [14];
const NEW_COUNT = IS_NIGHTLY ? 300 : 16;
const THREADS = 2;
/** Lines of the trace that are shown for a failure. */
const LINES_MAX = 150;

it(`clusters lose nothing and recover in ${NEW_COUNT} simulations`, async () => {
  // A seed and those after it do not overlap with those of the next run.
  const first = 1_000 * testSeed();
  const failed: string[] = [];
  await simulateAll([...FIXED, ...consecutive(first, NEW_COUNT)], THREADS, (result) => {
    if (result.failures.length > 0) failed.push(describeFailure(result, LINES_MAX));
    return true;
  });
  assert.equal(failed.join('\n'), '', `from seed ${first} on; see README.md`);
});
