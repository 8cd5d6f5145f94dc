// Mixed work with restarts for some seconds: every kind of request works, and restarts lose nothing. Detecting growth
// takes longer; see `soak/main.ts`.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { plotSoak } from './soak/plot.js';
import { runSoak } from './soak/soak.js';

it('a server does mixed work through restarts', async () => {
  const seed = testSeed();
  const report = await runSoak({
    durationMs: 16_000,
    restartMs: 6_000,
    sampleMs: 1_000,
    calibrationMs: 1_500,
    load: 0.5,
    rowCount: 2_000,
    seed,
  });
  assert.deepEqual(report.faults, [], `seed ${seed}`);
  assert.ok(new Set(report.samples.map(({ process }) => process)).size >= 2);
  const kinds = new Set(report.samples.flatMap(({ latencies }) => Object.keys(latencies)));
  for (const kind of ['query', 'upsert 50', 'patch', 'delete']) assert.ok(kinds.has(kind), kind);
  const { residentBytes, descriptors, threads, allocatedBytes } = report.samples.at(-1)!;
  assert.ok(residentBytes > 0 && descriptors > 0 && threads > 0 && allocatedBytes > 0);
  assert.match(plotSoak(report.samples, 'a title'), /<polyline points="\d/);
});
