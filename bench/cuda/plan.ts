// The steps of the GPU bench, most important first, in case a run is stopped early; an estimate of their
// duration, and which of them exceed the memory of this machine.

import type { Shape } from '../engine/options.js';

/** Isotropic vectors are the hardest to prune; `wordnet` are real text vectors. */
type StepData = 'clustered' | 'isotropic' | 'wordnet';

/** One run of the stand-alone bench, and one of torch: all batches × k × filters of one shape. */
export interface KernelStep extends Shape {
  readonly kind: 'kernels';
  readonly data: StepData;
  readonly batches: readonly number[];
  readonly ks: readonly number[];
  /** Percent of the rows that match; 100 for no filter. */
  readonly filters: readonly number[];
  /** Measuring time per case. */
  readonly seconds: number;
}

/** Cases through the engine, each comparable with one of the kernels alone. */
export interface EngineStep extends Shape {
  readonly kind: 'engine';
  readonly cases: readonly EngineStepCase[];
  readonly isFull: boolean;
}

export interface EngineStepCase {
  readonly batchCount: number;
  /** As in KernelStep, but each query has its own filter, which makes no difference for single queries. */
  readonly filterPercent: number;
}

export type Step = KernelStep | EngineStep;

/** Free bytes; null when unknown. */
export interface Memory {
  readonly hostBytes: number;
  readonly deviceBytes: number | null;
}

const BATCHES = [4096, 64, 16, 1, 128, 1024] as const;
const FILTERS = [10, 1, 50] as const;
/** All senses but those that are the queries of the largest batch, roughly. */
const WORDNET_ROWS = 113_000;

export function planSteps(isFull: boolean): Step[] {
  return isFull ? planFull() : planSmoke();
}

function planSmoke(): Step[] {
  const tiny = { rowCount: 20_000, dimension: 64 };
  return [
    {
      kind: 'kernels',
      data: 'clustered',
      ...tiny,
      batches: [16, 1],
      ks: [10],
      filters: [100, 10],
      seconds: 0,
    },
    {
      kind: 'engine',
      ...tiny,
      cases: [
        { batchCount: 16, filterPercent: 100 },
        { batchCount: 1, filterPercent: 10 },
      ],
      isFull: false,
    },
  ];
}

function planFull(): Step[] {
  const wide = { rowCount: 1_000_000, dimension: 768 };
  const all = { batches: BATCHES, ks: [10, 100], filters: [100, ...FILTERS] };
  type Cases = Pick<KernelStep, 'batches' | 'ks' | 'filters'>;
  const kernels = (shape: Shape, what: Cases, data: StepData = 'clustered'): Step => {
    return { kind: 'kernels', data, ...shape, ...what, seconds: 1 };
  };
  const deep = { batches: [4096, 64, 1], ks: [10, 100], filters: [100] };
  const isotropic = (dimension: number): Step =>
    kernels({ rowCount: 1_000_000, dimension }, deep, 'isotropic');
  return [
    kernels(wide, { batches: BATCHES, ks: [10], filters: [100] }),
    kernels(wide, { batches: BATCHES, ks: [10], filters: FILTERS }),
    {
      kind: 'engine',
      ...wide,
      cases: [
        ...[4096, 16, 1, 128].map((batchCount) => ({ batchCount, filterPercent: 100 })),
        { batchCount: 1, filterPercent: 10 },
      ],
      isFull: true,
    },
    kernels({ rowCount: WORDNET_ROWS, dimension: 768 }, deep, 'wordnet'),
    ...[1536, 1024, 3072].map(isotropic),
    kernels({ rowCount: 10_000_000, dimension: 768 }, all),
    kernels({ rowCount: 1_000_000, dimension: 128 }, all),
    kernels({ rowCount: 1_000_000, dimension: 1536 }, all),
    kernels(wide, { batches: BATCHES, ks: [100], filters: [100, ...FILTERS] }),
  ];
}

/** The name of a step, which --only matches. */
export function nameOf(step: Step): string {
  const size = `${step.rowCount} × ${step.dimension}`;
  if (step.kind === 'engine') return `${size} through the engine`;
  const data = step.data === 'clustered' ? '' : `${step.data}, `;
  const filters = step.filters.map((percent) => (percent === 100 ? 'no filter' : `${percent} %`));
  return `${size}, ${data}k = ${step.ks.join(' and ')}, ${filters.join(', ')}`;
}

export function countCases(step: Step): number {
  if (step.kind === 'engine') return step.cases.length;
  return step.batches.length * step.ks.length * step.filters.length;
}

/** Bytes per row besides values and codes: norms, residuals, an offset and padding of codes. */
const ROW_BYTES = 64;
/** Device memory for scores, candidates, pinned buffers and the measurement of peaks. */
const WORKING_BYTES = 3e9;

/** Which memory a step exceeds, as text; null if none. */
export function findShortage(step: Step, memory: Memory, peer: 'torch' | null): string | null {
  const { rowCount, dimension } = step;
  // float32 and int8; torch's bf16 copy (two bytes per value) exists on the device only.
  const bytes = rowCount * (dimension * 5 + ROW_BYTES);
  const needs: { name: string; needed: number; free: number | null }[] = [
    { name: 'host', needed: peer === null ? bytes : 0, free: memory.hostBytes },
    {
      name: 'device',
      needed: (peer === null ? bytes : rowCount * dimension * 6) + WORKING_BYTES,
      free: memory.deviceBytes,
    },
  ];
  const short = needs.find(({ needed, free }) => free !== null && needed > free);
  if (short === undefined) return null;
  return `needs ${gigabytes(short.needed)} of ${short.name} memory, found ${gigabytes(short.free!)} free`;
}

/** Rates of an H200 to within a factor of two: products and bytes per second of each side. */
const RATES = {
  kernels: { multiplyAdds: 3e14, copyBytes: 3e12 },
  bf16: { multiplyAdds: 2e14, copyBytes: 3e12 },
  float32: { multiplyAdds: 2e13, copyBytes: 3e12 },
} as const;
/** Time for a program to start and measure its peaks. */
const START_SECONDS = 5;
/** Time to generate and encode a value on one core. */
const VALUE_SECONDS = 5e-8;
/** Minimum calls per case, including checks and warm-up. */
const CALLS = 7;

/** A rough estimate: the data, then the minimum number of calls per case. */
export function estimateSeconds(step: Step, hasTorch: boolean, coreCount: number): number {
  const values = step.rowCount * step.dimension;
  if (step.kind === 'engine') {
    // Generated and checked by one JavaScript thread.
    return START_SECONDS + 4e-8 * values + 4 * step.cases.length;
  }
  const sides: (keyof typeof RATES)[] = hasTorch ? ['kernels', 'bf16', 'float32'] : ['kernels'];
  let seconds = sides.length * START_SECONDS + (values * VALUE_SECONDS) / coreCount;
  for (const queries of step.batches) {
    for (const side of sides) {
      const { multiplyAdds, copyBytes } = RATES[side];
      // torch writes all scores to memory before the selection reads them.
      const scoreBytes = side === 'kernels' ? 0 : 8 * 4 * queries * step.rowCount;
      const call = (queries * values) / multiplyAdds + (4 * values + scoreBytes) / copyBytes;
      seconds += Math.max(step.seconds, CALLS * call) * step.ks.length * step.filters.length;
    }
  }
  return seconds;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
