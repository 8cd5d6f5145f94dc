// What the GPU bench measures, the most important first, so that a run that is cut off has it; how
// long that may take, and what of it this machine has no room for.

import type { Shape } from '../engine/options.js';

/** One call of the stand-alone bench, and one of its peer: all batches × k × filters of one shape. */
export interface KernelStep extends Shape {
  readonly kind: 'kernels';
  readonly batches: readonly number[];
  readonly ks: readonly number[];
  /** Percent of the rows that pass; 100 for no filter. */
  readonly filters: readonly number[];
  /** A case is repeated for so long. */
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
  /** As in KernelStep; each query has a filter of its own, which one at a time makes no difference. */
  readonly filterPercent: number;
}

export type Step = KernelStep | EngineStep;

/** Bytes that are free; null where nobody says. */
export interface Memory {
  readonly hostBytes: number;
  readonly deviceBytes: number | null;
}

const BATCHES = [4096, 16, 1, 128, 1024] as const;
const FILTERS = [10, 1, 50] as const;

export function planSteps(isFull: boolean): Step[] {
  return isFull ? planFull() : planSmoke();
}

function planSmoke(): Step[] {
  const tiny = { rowCount: 20_000, dimension: 64 };
  return [
    { kind: 'kernels', ...tiny, batches: [16, 1], ks: [10], filters: [100, 10], seconds: 0 },
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
  const kernels = (shape: Shape, what: Pick<KernelStep, 'batches' | 'ks' | 'filters'>): Step => {
    return { kind: 'kernels', ...shape, ...what, seconds: 1 };
  };
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
    kernels({ rowCount: 10_000_000, dimension: 768 }, all),
    kernels({ rowCount: 1_000_000, dimension: 128 }, all),
    kernels({ rowCount: 1_000_000, dimension: 1536 }, all),
    kernels(wide, { batches: BATCHES, ks: [100], filters: [100, ...FILTERS] }),
  ];
}

/** What --only looks at, and what a step that does not run is called. */
export function nameOf(step: Step): string {
  const size = `${step.rowCount} × ${step.dimension}`;
  if (step.kind === 'engine') return `${size} through the engine`;
  const filters = step.filters.map((percent) => (percent === 100 ? 'no filter' : `${percent} %`));
  return `${size}, k = ${step.ks.join(' and ')}, ${filters.join(', ')}`;
}

export function countCases(step: Step): number {
  if (step.kind === 'engine') return step.cases.length;
  return step.batches.length * step.ks.length * step.filters.length;
}

/** What a row takes beside its values and codes: norms, residuals, an offset and its codes' rest. */
const ROW_BYTES = 64;
/** Scores, candidates and pinned memory on a device, and what peaks are measured on. */
const WORKING_BYTES = 3e9;

/** Why there is no room for a step, in words; null where there is. Smoke takes next to nothing. */
export function findShortage(step: Step, memory: Memory, peer: 'torch' | null): string | null {
  const { rowCount, dimension } = step;
  // float32 and int8; torch's copy for bf16 has two bytes, and is made on the device alone.
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
  return `needs ${gigabytes(short.needed)} on the ${short.name}, where ${gigabytes(short.free!)} are free`;
}

/** To within a factor of two, for an H200: products and bytes a second that each side reaches. */
const RATES = {
  kernels: { multiplyAdds: 3e14, copyBytes: 3e12 },
  bf16: { multiplyAdds: 2e14, copyBytes: 3e12 },
  float32: { multiplyAdds: 2e13, copyBytes: 3e12 },
} as const;
/** A program starts and measures its peaks. */
const START_SECONDS = 5;
/** To draw and encode a value, on one core. */
const VALUE_SECONDS = 5e-8;
/** Calls of a case at least, checks and warming up counted in. */
const CALLS = 7;

/** Data, then for each case as many calls as are made at least; a rough guess and said to be one. */
export function estimateSeconds(step: Step, hasTorch: boolean, coreCount: number): number {
  const values = step.rowCount * step.dimension;
  if (step.kind === 'engine') {
    // Drawn and checked by one thread of JavaScript.
    return START_SECONDS + 4e-8 * values + 4 * step.cases.length;
  }
  const sides: (keyof typeof RATES)[] = hasTorch ? ['kernels', 'bf16', 'float32'] : ['kernels'];
  let seconds = sides.length * START_SECONDS + (values * VALUE_SECONDS) / coreCount;
  for (const queries of step.batches) {
    for (const side of sides) {
      const { multiplyAdds, copyBytes } = RATES[side];
      // Scores go through memory several times where they are written before they are selected.
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
