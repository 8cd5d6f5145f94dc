// Whether a quantity stays flat: the medians of the thirds of its samples are compared, which single peaks do not move.
// What a process holds is compared within each process; what is on disk, and how long requests take, over all of them.

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
  /** The last third may be greater than the first by this share of it, */
  readonly growthMax: number;
  /** and by this much: what is small varies more. */
  readonly allowance: number;
}

const MB = 1e6;

/**
 * Memory settles within minutes of a start, since heap and caches fill. Latencies also depend on what else the machine
 * does, hence their wide bounds: a queue that grows or an index that decays makes them many times longer.
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

/** @param settleSeconds after each start, of which samples do not count. */
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
  // Of several processes, the one in the middle: a leak is in each of them.
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

/** NaN of no values. */
function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[half]!;
  return (sorted[half - 1]! + sorted[half]!) / 2;
}
