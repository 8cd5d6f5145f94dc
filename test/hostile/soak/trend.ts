// Decides whether a quantity grows by comparing the medians of the first and the last third of its samples, which
// single peaks do not move. What a process holds is compared within each process; disk usage and latencies over all of
// them.

import type { Sample } from './samples.js';

type Quantity =
  | 'residentBytes'
  | 'anonymousBytes'
  | 'heapBytes'
  | 'descriptors'
  | 'threads'
  | 'diskBytes'
  | 'allocatedBytes'
  | 'p50'
  | 'p99';

interface FlatRule {
  readonly over: 'process' | 'run';
  /** Allowed growth from the first to the last third, as a share of the first, */
  readonly growthMax: number;
  /** or as an absolute amount, because small values vary more. */
  readonly allowance: number;
}

const MB = 1e6;

/**
 * Memory settles within minutes of a start, since heap and caches fill. Latencies also depend on other work of the
 * machine, hence their wide bounds: a growing queue or a decaying index makes them many times longer.
 */
const FLAT: Readonly<Record<Quantity, FlatRule>> = {
  residentBytes: { over: 'process', growthMax: 0.15, allowance: 20 * MB },
  anonymousBytes: { over: 'process', growthMax: 0.15, allowance: 20 * MB },
  heapBytes: { over: 'process', growthMax: 0.2, allowance: 10 * MB },
  descriptors: { over: 'process', growthMax: 0.05, allowance: 5 },
  threads: { over: 'process', growthMax: 0, allowance: 1 },
  diskBytes: { over: 'run', growthMax: 0.2, allowance: 10 * MB },
  allocatedBytes: { over: 'run', growthMax: 0.2, allowance: 10 * MB },
  p50: { over: 'run', growthMax: 1, allowance: 5 },
  p99: { over: 'run', growthMax: 2, allowance: 50 },
};

export interface Trend {
  readonly quantity: Quantity;
  readonly first: number;
  readonly middle: number;
  readonly last: number;
  readonly isFlat: boolean;
}

/** @param settleSeconds time after each start whose samples do not count. */
export function trendsOf(samples: readonly Sample[], settleSeconds: number): Trend[] {
  const settled = samples.filter(({ processSeconds }) => processSeconds >= settleSeconds);
  return (Object.keys(FLAT) as Quantity[]).map((quantity) => trendOf(quantity, settled));
}

function trendOf(quantity: Quantity, samples: readonly Sample[]): Trend {
  const { over, growthMax, allowance } = FLAT[quantity];
  const groups = over === 'run' ? [samples] : byProcess(samples);
  const thirds = groups
    .filter(({ length }) => length >= 3)
    .map((group) => thirdsOf(group.map((sample) => sample[quantity])));
  // The median process decides, because a leak affects all of them.
  const [first, middle, last] = [0, 1, 2].map((i) => median(thirds.map((third) => third[i]!)));
  const growth = median(thirds.map(([start, , end]) => end! - start!));
  // Without samples nothing is known.
  const isFlat = growth <= Math.max(first! * growthMax, allowance);
  return { quantity, first: first!, middle: middle!, last: last!, isFlat };
}

export function byProcess(samples: readonly Sample[]): Sample[][] {
  const groups = new Map<number, Sample[]>();
  for (const sample of samples) {
    const group = groups.get(sample.process) ?? [];
    groups.set(sample.process, group);
    group.push(sample);
  }
  return [...groups.values()];
}

function thirdsOf(values: readonly number[]): number[] {
  const at = (i: number) => Math.round((values.length * i) / 3);
  return [0, 1, 2].map((i) => median(values.slice(at(i), at(i + 1))));
}

/** NaN for an empty list. */
function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[half]!;
  return (sorted[half - 1]! + sorted[half]!) / 2;
}
