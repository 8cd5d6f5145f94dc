// Short runs of all decoders over damaged inputs; `decoders/main.ts` is for long runs.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { fuzzDecoders } from './decoders/fuzz-decoders.js';

it('damaged inputs are refused with a message, or read as by a second reader', async () => {
  const seed = testSeed();
  const reports = await fuzzDecoders({ seed, durationMs: 16_000 });
  assert.deepEqual(
    reports.flatMap(({ faults }) => faults),
    [],
    `seed ${seed}`,
  );
  // The first inputs are undamaged files, so that each decoder has something to read.
  for (const { name, caseCount, outcomes } of reports) {
    assert.ok(caseCount > 0, name);
    console.log(`${name}: ${JSON.stringify(outcomes)}`);
  }
});
