// Mixed work with restarts for some seconds: every kind of request works, restarts lose nothing, and the trend test
// tells what grows from what does not. Whether the service stays flat takes longer to see: `soak/main.ts`.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testSeed } from '../database/harness.js';
import { plotSoak } from './soak/plot.js';
import type { Sample } from './soak/samples.js';
import { runSoak } from './soak/soak.js';
import { trendsOf } from './soak/trend.js';

describe('soak', () => {
  it('does mixed work through restarts', async () => {
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

  it('finds what grows within a process, or over all of them', () => {
    const samples = Array.from({ length: 90 }, (_, i) => sampleAt(i, {}));
    const growing = (change: (i: number) => Partial<Sample>) =>
      trendsOf(
        samples.map((sample, i) => ({ ...sample, ...change(i) })),
        5,
      )
        .filter(({ isFlat }) => !isFlat)
        .map(({ quantity }) => quantity);
    assert.deepEqual(
      growing(() => ({})),
      [],
    );
    // A peak is not a trend.
    assert.deepEqual(
      growing((i) => (i % 10 === 0 ? { residentBytes: 1e9, p99: 1e4 } : {})),
      [],
    );
    assert.deepEqual(
      growing((i) => ({ residentBytes: 100e6 + (i % 30) * 4e6 })),
      ['residentBytes'],
    );
    assert.deepEqual(
      growing((i) => ({ descriptors: 40 + (i % 30) })),
      ['descriptors'],
    );
    assert.deepEqual(
      growing((i) => ({ allocatedBytes: 100e6 + i * 1e6 })),
      ['allocatedBytes'],
    );
    // It is freed by each restart, and grows again.
    assert.deepEqual(
      growing((i) => ({ diskBytes: 100e6 + (i % 30) * 4e6 })),
      [],
    );
  });
});

/** Three processes of 30 samples each. */
function sampleAt(i: number, change: Partial<Sample>): Sample {
  return {
    seconds: i * 5,
    process: Math.floor(i / 30),
    processSeconds: (i % 30) * 5,
    residentBytes: 200e6,
    anonymousBytes: 150e6,
    heapBytes: 50e6,
    descriptors: 40,
    threads: 15,
    diskBytes: 100e6,
    allocatedBytes: 100e6,
    requestCount: i * 100,
    latencies: {},
    p50: 2,
    p99: 20,
    ...change,
  };
}
