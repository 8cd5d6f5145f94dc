// A short run of the fuzzer of the API, with bounds that hold on a busy machine; `fuzz/main.ts` is for long runs.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { describeFault, findGaps, runFuzz, tableOf } from './fuzz/fuzz.js';

/** A probe that waits longer has met a request that blocks the event loop, not a busy machine. */
const PROBE_MS_MAX = 10_000;
/** In so short a time caches and compiled code still grow. */
const MEMORY_GROWTH_MAX = 1.6;

it('the service answers any request as openapi.json describes', async () => {
  const seed = testSeed();
  const report = await runFuzz({
    seed,
    clientCount: 3,
    durationMs: 15_000,
    rounds: 1,
    warmUpMs: 5_000,
    probeMs: 200,
  });
  console.table(tableOf(report.coverage));
  const { longestMs, count } = report.probe;
  console.log(`${report.requestCount} requests; the longest of ${count} probes: ${longestMs} ms`);
  assert.deepEqual(report.faults.map(describeFault), [], `seed ${seed}`);
  assert.deepEqual(findGaps(report.coverage), []);
  assert.ok(longestMs < PROBE_MS_MAX, report.slowProbes.join('\n'));
  const [before, after] = report.memory.map(({ anonymousBytes }) => anonymousBytes);
  assert.ok(Number.isNaN(before) || after! < before! * MEMORY_GROWTH_MAX, `${before} to ${after}`);
});
