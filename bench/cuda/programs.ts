// Runs the programs of the GPU bench and reads their output line by line: the stand-alone bench of the
// kernels, the same searches in torch, and nvidia-smi.

import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { ROOT } from '../engine/machine.js';
import type { KernelStep, Memory } from './plan.js';

export const KERNELS_PROGRAM = join(ROOT, 'build', 'kernels', 'cuda-bench');
const TERM_VECTORS = join(ROOT, 'build', 'kernels', 'term-vectors');
const WORDNET_TERMS = join(ROOT, 'bench', 'data', 'wordnet-terms.gz');
const TORCH_SCRIPT = join(ROOT, 'bench', 'cuda', 'torch_topk.py');

/** Exit code of both programs without a device or package; also used when a program does not start. */
export const ABSENT = 77;
/** Exit code of the kernels' program when memory is insufficient. */
export const NO_ROOM = 2;

/** Timeout of a program; the largest step takes a few minutes. */
const RUN_MS_MAX = 30 * 60_000;
const STDERR_LENGTH_MAX = 2_000;

interface ProgramResult {
  /** Null when the program was ended by a signal. */
  readonly code: number | null;
  /** The last line on stderr, or why the program did not start. */
  readonly message: string;
}

/** Passes each line of stdout to `onLine`; if that throws, ends the program and rejects with the error. */
export function runProgram(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void,
): Promise<ProgramResult> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  const timer = setTimeout(kill, RUN_MS_MAX);
  // The program must not keep using the device after the bench has exited.
  process.on('exit', kill);
  const settle = () => {
    clearTimeout(timer);
    process.off('exit', kill);
  };
  const lines = createInterface({ input: child.stdout });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_LENGTH_MAX);
  });
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      try {
        if (line.trim() !== '') onLine(line);
      } catch (error) {
        lines.removeAllListeners('line');
        kill();
        reject(error);
      }
    });
    // The program did not start, so `close` is not emitted.
    child.on('error', ({ message }) => {
      settle();
      resolve({ code: ABSENT, message });
    });
    child.on('close', (code, signal) => {
      settle();
      const last = stderr.trimEnd().split('\n').at(-1)!.trim();
      const message =
        signal === null ? last : `ended by ${signal}${last === '' ? '' : `, ${last}`}`;
      resolve({ code, message });
    });
  });
}

/** `data` is what `prepareData` returns. */
export function kernelArguments(step: KernelStep, data: string): string[] {
  return ['--json', 'scan', ...shapeArguments(step, data)];
}

export function torchArguments(step: KernelStep, data: string): string[] {
  return [TORCH_SCRIPT, ...shapeArguments(step, data)];
}

/**
 * What both programs take as --data: a distribution, or a file in `folder` that is written for the step.
 * Rejects when that is not possible.
 */
export async function prepareData({ data, dimension }: KernelStep, folder: string) {
  if (data !== 'wordnet') return data;
  const file = join(folder, `${data}.f32`);
  if (existsSync(file)) return file;
  const terms = join(folder, `${data}-terms`);
  writeFileSync(terms, gunzipSync(readFileSync(WORDNET_TERMS)));
  const args = [terms, String(dimension), file];
  const { code, message } = await runProgram(TERM_VECTORS, args, () => {});
  if (code === ABSENT) {
    throw new Error(`${message}; build it with \`node scripts/build-kernels.mjs term-vectors\``);
  }
  if (code !== 0) throw new Error(`term-vectors exited with ${code}: ${message}`);
  return file;
}

function shapeArguments(
  { rowCount, dimension, batches, ks, filters, seconds }: KernelStep,
  data: string,
) {
  const options = { data, rows: rowCount, dimension, batches, ks, filters, seconds };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

export interface DriverInfo {
  readonly driverVersion: string;
  readonly memoryBytes: number;
  readonly freeBytes: number;
  readonly watts: string;
}

/** The driver's figures for the first device; null without nvidia-smi. */
export async function queryDriver(): Promise<DriverInfo | null> {
  // The first device visible to CUDA, by number or name.
  const device = process.env.CUDA_VISIBLE_DEVICES?.split(',')[0] || '0';
  const query = '--query-gpu=driver_version,memory.total,memory.free,power.limit';
  try {
    const options = ['-i', device, query, '--format=csv,noheader,nounits'];
    const { stdout } = await promisify(execFile)('nvidia-smi', options, { timeout: 30_000 });
    return parseDriver(stdout);
  } catch {
    return null;
  }
}

/** Parses `580.65.06, 143771, 143250, 700.00` (MiB and watts); null for anything else. */
export function parseDriver(text: string): DriverInfo | null {
  const [driverVersion, total, free, watts] = text
    .trim()
    .split(',')
    .map((part) => part.trim());
  const [memoryBytes, freeBytes] = [Number(total) * 2 ** 20, Number(free) * 2 ** 20];
  if (!driverVersion || watts === undefined || !(memoryBytes > 0 && freeBytes >= 0)) return null;
  return { driverVersion, memoryBytes, freeBytes, watts };
}

export function measureMemory(driver: DriverInfo | null): Memory {
  // Respects the memory limit of a container.
  const hostBytes = Math.min(freemem(), process.availableMemory());
  return { hostBytes, deviceBytes: driver?.freeBytes ?? null };
}
