// A short run of the API fuzzer; `fuzz/main.ts` is for long runs, which also measure memory.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { describeFault, findGaps, runFuzz, tableOf } from './fuzz/fuzz.js';

/** Only a hang takes this long, even on a busy machine. */
const HANG_MS = 60_000;

it('the service answers any request as openapi.json describes', async () => {
  const seed = testSeed();
  const report = await runFuzz({
    seed,
    clientCount: 3,
    durationMs: 8_000,
    requestsMin: 2_500,
    rounds: 1,
    warmUpMs: 0,
    probeMs: HANG_MS,
  });
  console.table(tableOf(report.coverage));
  console.log(`${report.requestCount} requests`);
  assert.deepEqual(report.faults.map(describeFault), [], `seed ${seed}`);
  assert.deepEqual(findGaps(report.coverage), []);
  assert.deepEqual(report.slowProbes, [], 'no request blocks the others');
});
