// The peak rates of this machine, and the kernels without the server, measured by the kernels' own bench
// executable. If it is not built, shares of the peak are omitted.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { WrongResult } from './check.js';
import { ROOT, THREAD_COUNT } from './machine.js';
import { quantile } from './timing.js';
import type { Shape } from './vectors.js';

const EXECUTABLE = join(ROOT, 'build', 'kernels', 'bench');
/** Timeout of one run. */
const RUN_MS_MAX = 300_000;
type PeakName = 'clock_ghz' | 'f32_gflop_per_s' | 'int8_gop_per_s';

export interface Peak {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** How fast all threads together read this many bytes again and again. */
interface ReadPeak extends Peak {
  readonly bytes: number;
}

/** One run of the executable. */
interface PeakRun extends Record<PeakName, number> {
  /** By working set, smallest first; the same sets in every run. */
  readonly reads: readonly { readonly bytes: number; readonly gbPerSecond: number }[];
}

export interface KernelCase {
  readonly target: string;
  readonly shape: Shape;
  readonly queryCount: number;
}

export interface KernelScan extends KernelCase {
  readonly secondsP50: number;
  readonly queriesPerSecond: number;
  readonly gopPerSecond: number;
  readonly rescoredPerQuery: number;
}

/** A run without figures. */
export interface KernelFailure extends KernelCase {
  readonly failure: string;
}

export class Peaks {
  readonly #runs: PeakRun[] = [];
  /** Why there are no peaks; null as long as there are. */
  missing: string | null = existsSync(EXECUTABLE)
    ? null
    : 'build/kernels/bench is not built, so shares of the peak are omitted';

  get runCount(): number {
    return this.#runs.length;
  }

  /** Measures again; a failure is recorded and reported once. */
  async measure(): Promise<void> {
    if (this.missing !== null) return;
    try {
      const text = await runExecutable('peaks', '--threads', String(THREAD_COUNT), '--json');
      this.#runs.push(parseRun(parseObject(text)));
    } catch (error) {
      this.missing = `the peaks could not be measured: ${messageOf(error)}`;
    }
  }

  /** Null before the first measurement. */
  get(name: PeakName): Peak | null {
    return summarize(this.#runs.map((run) => run[name]));
  }

  /** By working set, smallest first. */
  get reads(): readonly ReadPeak[] {
    const [first] = this.#runs;
    if (first === undefined) return [];
    return first.reads.map(({ bytes }, i) => {
      const rates = this.#runs.map((run) => run.reads[i]!.gbPerSecond);
      return { bytes, ...summarize(rates)! };
    });
  }

  /**
   * Returns the peak that bounds reading this many bytes: that of the largest measured working set that is not
   * larger, since caches hold at least as much of a smaller one. Null before the first measurement.
   */
  readsOf(bytes: number): ReadPeak | null {
    const { reads } = this;
    return reads.findLast((read) => read.bytes <= bytes) ?? reads[0] ?? null;
  }
}

function summarize(values: readonly number[]): Peak | null {
  if (values.length === 0) return null;
  return {
    median: quantile(values, 0.5),
    least: Math.min(...values),
    most: Math.max(...values),
  };
}

function parseRun(run: Record<string, unknown>): PeakRun {
  const { reads } = run;
  if (!Array.isArray(reads)) {
    throw new Error(`expected an array as reads, found ${JSON.stringify(reads)}`);
  }
  return {
    clock_ghz: numberOf(run, 'clock_ghz'),
    f32_gflop_per_s: numberOf(run, 'f32_gflop_per_s'),
    int8_gop_per_s: numberOf(run, 'int8_gop_per_s'),
    reads: reads.map((read: Record<string, unknown>) => ({
      bytes: numberOf(read, 'bytes'),
      gbPerSecond: numberOf(read, 'gb_per_s'),
    })),
  };
}

/** Returns the instruction sets that the kernels and this machine support. */
export async function listTargets(): Promise<string[]> {
  const text = await runExecutable('targets');
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s/)[0]!)
    .filter((name) => name !== '');
}

/** Throws WrongResult when the executable's own check finds one. */
export async function scanKernel(kernelCase: KernelCase): Promise<KernelScan | KernelFailure> {
  try {
    return await tryScan(kernelCase);
  } catch (error) {
    if (error instanceof WrongResult) throw error;
    return { ...kernelCase, failure: messageOf(error).split('\n')[0]! };
  }
}

async function tryScan(kernelCase: KernelCase): Promise<KernelScan> {
  const { target, shape, queryCount } = kernelCase;
  const numbers = {
    rows: shape.rowCount,
    dimension: shape.dimension,
    queries: queryCount,
    k: 10,
    threads: THREAD_COUNT,
  };
  const options = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const reply = parseObject(await runExecutable('scan', ...options, '--target', target, '--json'));
  if (reply.exact !== true) {
    throw new WrongResult(`the ${target} kernels return wrong results for ${options.join(' ')}`);
  }
  return {
    ...kernelCase,
    secondsP50: numberOf(reply, 'seconds_p50'),
    queriesPerSecond: numberOf(reply, 'queries_per_s'),
    gopPerSecond: numberOf(reply, 'gop_per_s'),
    rescoredPerQuery: numberOf(reply, 'rescored_per_query'),
  };
}

async function runExecutable(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(EXECUTABLE, args, { timeout: RUN_MS_MAX });
  return stdout;
}

function parseObject(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) {
    throw new Error(`expected a JSON object from ${EXECUTABLE}, found ${text.slice(0, 80)}`);
  }
  return value as Record<string, unknown>;
}

function numberOf(object: Record<string, unknown>, name: string): number {
  const value = object[name];
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new Error(`expected a number as ${name}, found ${JSON.stringify(value)}`);
  }
  return value;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
