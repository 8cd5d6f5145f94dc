// The trend test of the soak, on samples that grow and samples that do not.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Sample } from './samples.js';
import { trendsOf } from './trend.js';

it('the trend of samples reveals growth within a process or across processes', () => {
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
  // Each restart frees it, and it grows again.
  assert.deepEqual(
    growing((i) => ({ diskBytes: 100e6 + (i % 30) * 4e6 })),
    [],
  );
});

/** Three processes with 30 samples each. */
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
