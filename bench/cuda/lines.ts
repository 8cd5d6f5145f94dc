// Parsers for the lines that the stand-alone bench and torch_topk.py print with --json: the device, then
// one line per case. Members are named as in the lines; anything unexpected is an error.

import { WrongResult } from '../engine/check.js';

/** The members that identify a case, in the lines of both programs. */
export const CASE_NUMBERS = ['rows', 'dimension', 'queries', 'k', 'filter_percent'] as const;
export const DEVICE_NUMBERS = [
  'compute_capability',
  'driver',
  'runtime',
  'copy_gb_per_s',
  'mma_int8_top_per_s',
  'wgmma_int8_top_per_s',
] as const;
export const KERNEL_NUMBERS = [
  ...CASE_NUMBERS,
  'device_ms_p50',
  'wall_ms_p50',
  'queries_per_s',
  'share_of_copy',
  'share_of_int8',
  'rescored_per_query',
  'repeated',
  'exhaustive',
  'undecided',
] as const;
export const TORCH_DEVICE_NUMBERS = ['bf16_flop_per_s'] as const;
export const TORCH_NUMBERS = [...CASE_NUMBERS, 'device_ms_p50', 'wall_ms_p50', 'chunks'] as const;
export const PRECISIONS = ['bf16', 'float32'] as const;

export type CaseShape = Readonly<Record<(typeof CASE_NUMBERS)[number], number>> & {
  /** The distribution of the vectors, or the name of the file with them. */
  readonly data: string;
};
export type DeviceLine = Readonly<Record<(typeof DEVICE_NUMBERS)[number], number>> & {
  readonly kind: 'device';
  readonly device: string;
  /** The architecture that the kernels in use were compiled for. */
  readonly kernels: string;
};
/** Times are medians; queries/s use wall time, both shares device time over all rows. */
export type KernelLine = CaseShape &
  Readonly<Record<(typeof KERNEL_NUMBERS)[number], number>> & { readonly kind: 'case' };
export type TorchDeviceLine = Readonly<Record<(typeof TORCH_DEVICE_NUMBERS)[number], number>> & {
  readonly kind: 'device';
  readonly torch: string;
  readonly cuda: string;
};
export type TorchLine = CaseShape &
  Readonly<Record<(typeof TORCH_NUMBERS)[number], number>> & {
    readonly kind: 'case';
    readonly precision: (typeof PRECISIONS)[number];
    /** Recall of this precision against float32, over a few queries; null for float32 itself. */
    readonly recall: number | null;
  };
/** A case that torch could not run for lack of memory. */
export type TorchFailure = CaseShape & {
  readonly kind: 'failure';
  readonly precision: (typeof PRECISIONS)[number];
  readonly failure: string;
};

/** Throws WrongResult if the program's own check against the CPU failed. */
export function parseKernelLine(text: string): DeviceLine | KernelLine {
  const line = parseObject(text);
  if ('device' in line) {
    const [device, kernels] = [textOf(line, 'device'), textOf(line, 'kernels')];
    return { kind: 'device', device, kernels, ...numbersOf(line, DEVICE_NUMBERS) };
  }
  if (line.exact !== true) throw new WrongResult(`the GPU kernels return wrong results: ${text}`);
  return { kind: 'case', data: textOf(line, 'data'), ...numbersOf(line, KERNEL_NUMBERS) };
}

export function parseTorchLine(text: string): TorchDeviceLine | TorchLine | TorchFailure {
  const line = parseObject(text);
  if ('torch' in line) {
    const [torch, cuda] = [textOf(line, 'torch'), textOf(line, 'cuda')];
    return { kind: 'device', torch, cuda, ...numbersOf(line, TORCH_DEVICE_NUMBERS) };
  }
  const precision = PRECISIONS.find((name) => name === line.precision);
  if (precision === undefined) {
    const found = JSON.stringify(line.precision);
    throw new Error(`expected one of ${PRECISIONS.join(', ')} as precision, found ${found}`);
  }
  const data = textOf(line, 'data');
  if ('failure' in line) {
    const failure = textOf(line, 'failure');
    return { kind: 'failure', precision, failure, data, ...numbersOf(line, CASE_NUMBERS) };
  }
  const recall = line.recall === null ? null : numberOf(line, 'recall');
  return { kind: 'case', precision, recall, data, ...numbersOf(line, TORCH_NUMBERS) };
}

export function isSameCase(left: CaseShape, right: CaseShape): boolean {
  return left.data === right.data && CASE_NUMBERS.every((name) => left[name] === right[name]);
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown = null;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(
      `expected a line with a JSON object, found ${JSON.stringify(text.slice(0, 80))}`,
    );
  }
  return value as Record<string, unknown>;
}

function numbersOf<Name extends string>(
  line: Record<string, unknown>,
  names: readonly Name[],
): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, numberOf(line, name)])) as Record<
    Name,
    number
  >;
}

function numberOf(line: Record<string, unknown>, name: string): number {
  const value = line[name];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`expected a number as ${name}, found ${JSON.stringify(value)}`);
}

function textOf(line: Record<string, unknown>, name: string): string {
  const value = line[name];
  if (typeof value === 'string') return value;
  throw new Error(`expected text as ${name}, found ${JSON.stringify(value)}`);
}
