// What is wanted of a case on a GPU, and whether it is reached. One list: a table's last column and
// the summary under the tables both come from it.

import type { KernelLine, TorchDeviceLine, TorchLine } from './lines.js';

/** A case, and what it is compared with; null is what was not measured. */
export interface Figures {
  readonly kernel: KernelLine;
  /** Over all rows, so null where a filter leaves some out: it would flatter. */
  readonly ofCopy: number | null;
  readonly ofInt8: number | null;
  /** Of the queries/s that torch's bf16 matrix rate would give. */
  readonly ofBf16: number | null;
  readonly bf16: TorchLine | null;
  readonly float32: TorchLine | null;
  /** How many times as fast as torch, by times on the device. */
  readonly toBf16: number | null;
  readonly toFloat32: number | null;
}

export interface Wanted {
  readonly what: string;
  /** In a cell. */
  readonly name: string;
  readonly kind: 'share' | 'ratio';
  readonly least: number;
  isFor(kernel: KernelLine): boolean;
  /** Null where it was not measured. */
  valueOf(figures: Figures): number | null;
}

/** The matrix units of an A100, an H100 and an H200 multiply int8 twice as fast as bf16. */
const INT8_TO_BF16 = 2;

export const WANTED: readonly Wanted[] = [
  {
    what: 'a batch of at most 64 at 70 % of the copy bandwidth',
    name: 'of copy',
    kind: 'share',
    least: 0.7,
    isFor: ({ queries, filter_percent }) => queries <= 64 && filter_percent === 100,
    valueOf: ({ ofCopy }) => ofCopy,
  },
  {
    what: 'a batch of 4 096 at D = 768 at 45 % of the bf16 matrix rate or its int8 equivalent',
    name: 'of bf16',
    kind: 'share',
    least: 0.45,
    isFor: ({ queries, dimension, filter_percent }) =>
      queries === 4096 && dimension === 768 && filter_percent === 100,
    valueOf: ({ ofBf16, ofInt8 }) => ofBf16 ?? (ofInt8 === null ? null : ofInt8 * INT8_TO_BF16),
  },
  {
    what: 'ahead of torch, in both precisions',
    name: 'torch',
    kind: 'ratio',
    least: 1,
    isFor: ({ filter_percent }) => filter_percent === 100,
    valueOf: toTorch,
  },
  {
    what: 'with a filter 3 × torch, in both precisions',
    name: 'torch',
    kind: 'ratio',
    least: 3,
    isFor: ({ filter_percent }) => filter_percent < 100,
    valueOf: toTorch,
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

/** The lesser of the two, or the one that there is. */
function toTorch({ toBf16, toFloat32 }: Figures): number | null {
  if (toBf16 === null || toFloat32 === null) return toBf16 ?? toFloat32;
  return Math.min(toBf16, toFloat32);
}

/** What is wanted of this case, in a cell, as far as it was measured: met, or what was reached instead. */
export function judge(figures: Figures): string {
  const said = WANTED.filter((wanted) => wanted.isFor(figures.kernel)).flatMap((wanted) => {
    const value = wanted.valueOf(figures);
    if (value === null) return [];
    const isMet = value >= wanted.least;
    return isMet ? [`${wanted.name} met`] : [`${wanted.name} missed: ${show(wanted, value)}`];
  });
  if (figures.kernel.undecided > 0) said.push('undecided ones are left to the CPU, untimed');
  return said.length === 0 ? '—' : said.join('; ');
}

export interface Summary {
  readonly wanted: Wanted;
  readonly metCount: number;
  readonly measuredCount: number;
  /** The farthest from what is wanted; null where nothing was measured. */
  readonly worst: { readonly figures: Figures; readonly value: string } | null;
}

export function summarize(all: readonly Figures[]): Summary[] {
  return WANTED.map((wanted) => {
    const measured = all
      .filter(({ kernel }) => wanted.isFor(kernel))
      .flatMap((figures) => {
        const value = wanted.valueOf(figures);
        return value === null ? [] : [{ figures, value }];
      })
      .sort((left, right) => left.value - right.value);
    const [worst] = measured;
    return {
      wanted,
      metCount: measured.filter(({ value }) => value >= wanted.least).length,
      measuredCount: measured.length,
      worst: worst === undefined ? null : { ...worst, value: show(wanted, worst.value) },
    };
  });
}

function show({ kind }: Wanted, value: number): string {
  return kind === 'share' ? `${(value * 100).toFixed(0)} %` : `${value.toFixed(2)} ×`;
}
