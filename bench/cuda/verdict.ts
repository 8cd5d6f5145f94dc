// The performance goals of the GPU bench, and whether a case meets them: the source of the tables' last
// column and of the summary.

import type { KernelLine, TorchDeviceLine, TorchLine } from './lines.js';

/** A case and its comparisons; null for what was not measured. */
export interface Figures {
  readonly kernel: KernelLine;
  /** Over all rows, so null with a filter, where it would be too high. */
  readonly ofCopy: number | null;
  readonly ofInt8: number | null;
  /** Share of the queries/s that torch's bf16 matrix rate would allow. */
  readonly ofBf16: number | null;
  readonly bf16: TorchLine | null;
  readonly float32: TorchLine | null;
  /** Speedup over torch, by device times. */
  readonly toBf16: number | null;
  readonly toFloat32: number | null;
}

interface Goal {
  readonly what: string;
  /** Short name for a table cell. */
  readonly name: string;
  readonly kind: 'share' | 'ratio';
  readonly least: number;
  isFor(kernel: KernelLine): boolean;
  /** Null if not measured. */
  valueOf(figures: Figures): number | null;
}

/** The matrix units of an A100, an H100 and an H200 multiply int8 twice as fast as bf16. */
const INT8_TO_BF16 = 2;

const GOALS: readonly Goal[] = [
  {
    what: 'batches of at most 64: 70 % of the copy bandwidth',
    name: 'of copy',
    kind: 'share',
    least: 0.7,
    isFor: ({ queries, filter_percent }) => queries <= 64 && filter_percent === 100,
    valueOf: ({ ofCopy }) => ofCopy,
  },
  {
    what: 'batches of 4 096 at D = 768: 45 % of the bf16 matrix rate or its int8 equivalent',
    name: 'of bf16',
    kind: 'share',
    least: 0.45,
    isFor: ({ queries, dimension, filter_percent }) =>
      queries === 4096 && dimension === 768 && filter_percent === 100,
    valueOf: ({ ofBf16, ofInt8 }) => ofBf16 ?? (ofInt8 === null ? null : ofInt8 * INT8_TO_BF16),
  },
  {
    what: 'faster than torch, in both precisions',
    name: 'torch',
    kind: 'ratio',
    least: 1,
    isFor: ({ filter_percent }) => filter_percent === 100,
    valueOf: toTorch,
  },
  {
    // bf16 is not exact, and has only twice the bytes of int8: small batches cannot be 3 × as fast.
    what: 'with a filter: 3 × as fast as torch in float32',
    name: 'torch',
    kind: 'ratio',
    least: 3,
    isFor: ({ filter_percent }) => filter_percent < 100,
    valueOf: ({ toFloat32 }) => toFloat32,
  },
];

export function compareWithTorch(
  kernel: KernelLine,
  head: TorchDeviceLine | null,
  lines: readonly TorchLine[],
): Figures {
  const of = (precision: TorchLine['precision']) =>
    lines.find((line) => line.precision === precision) ?? null;
  const [bf16, float32] = [of('bf16'), of('float32')];
  const isWhole = kernel.filter_percent === 100;
  const roof = (head?.bf16_flop_per_s ?? 0) / (2 * kernel.rows * kernel.dimension);
  const ratio = (line: TorchLine | null) =>
    line === null ? null : line.device_ms_p50 / kernel.device_ms_p50;
  return {
    kernel,
    ofCopy: isWhole ? kernel.share_of_copy : null,
    ofInt8: isWhole ? kernel.share_of_int8 : null,
    ofBf16: isWhole && head !== null ? kernel.queries_per_s / roof : null,
    bf16,
    float32,
    toBf16: ratio(bf16),
    toFloat32: ratio(float32),
  };
}

/** The smaller ratio, or the only one. */
function toTorch({ toBf16, toFloat32 }: Figures): number | null {
  if (toBf16 === null || toFloat32 === null) return toBf16 ?? toFloat32;
  return Math.min(toBf16, toFloat32);
}

/** The verdict on a case for a table cell: each measured goal, met or with the value reached. */
export function judge(figures: Figures): string {
  const verdicts = GOALS.filter((goal) => goal.isFor(figures.kernel)).flatMap((goal) => {
    const value = goal.valueOf(figures);
    if (value === null) return [];
    const isMet = value >= goal.least;
    return isMet ? [`${goal.name} met`] : [`${goal.name} missed: ${show(goal, value)}`];
  });
  const { repeated, exhaustive, undecided } = figures.kernel;
  // Of data that int8 prunes badly.
  if (repeated > 0) verdicts.push(`${repeated} queries scanned again`);
  if (exhaustive > 0) verdicts.push(`all rows of ${exhaustive} queries scored`);
  if (undecided > 0) verdicts.push('undecided queries are left to the CPU, not timed');
  return verdicts.length === 0 ? '—' : verdicts.join('; ');
}

export interface Summary {
  readonly goal: Goal;
  readonly metCount: number;
  readonly measuredCount: number;
  /** The case farthest from the goal; null if nothing was measured. */
  readonly worst: { readonly figures: Figures; readonly value: string } | null;
}

export function summarize(all: readonly Figures[]): Summary[] {
  return GOALS.map((goal) => {
    const measured = all
      .filter(({ kernel }) => goal.isFor(kernel))
      .flatMap((figures) => {
        const value = goal.valueOf(figures);
        return value === null ? [] : [{ figures, value }];
      })
      .sort((left, right) => left.value - right.value);
    const [worst] = measured;
    return {
      goal,
      metCount: measured.filter(({ value }) => value >= goal.least).length,
      measuredCount: measured.length,
      worst: worst === undefined ? null : { ...worst, value: show(goal, worst.value) },
    };
  });
}

function show({ kind }: Goal, value: number): string {
  return kind === 'share' ? `${(value * 100).toFixed(0)} %` : `${value.toFixed(2)} ×`;
}
