// The programs that the GPU bench starts, a line of theirs at a time: the stand-alone bench of the
// kernels, the same searches in torch, and nvidia-smi for what only the driver knows.

import { execFile, spawn } from 'node:child_process';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { ROOT } from '../engine/machine.js';
import type { KernelStep, Memory } from './plan.js';

export const KERNELS_PROGRAM = join(ROOT, 'build', 'kernels', 'cuda-bench');
const TORCH_SCRIPT = join(ROOT, 'bench', 'cuda', 'torch_topk.py');

/** Both programs end so where what they need is not there; one that does not start is not there itself. */
export const ABSENT = 77;
/** The kernels' program, for want of memory. */
export const NO_ROOM = 2;

/** A program that hangs must not hang the bench; the largest step takes a few minutes. */
const RUN_MS_MAX = 30 * 60_000;
const SAID_LENGTH_MAX = 2_000;

export interface Ending {
  /** Null where a signal ended it. */
  readonly code: number | null;
  /** The last line that it said on stderr, or why it did not start. */
  readonly said: string;
}

/** Hands over each line of stdout as it comes; rejects with what `onLine` throws, and ends the program. */
export function runProgram(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void,
): Promise<Ending> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  const timer = setTimeout(kill, RUN_MS_MAX);
  // A device must not go on working for nobody.
  process.on('exit', kill);
  const settle = () => {
    clearTimeout(timer);
    process.off('exit', kill);
  };
  const lines = createInterface({ input: child.stdout });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-SAID_LENGTH_MAX);
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
    // It did not start: no line will come, and nothing will close.
    child.on('error', ({ message }) => {
      settle();
      resolve({ code: ABSENT, said: message });
    });
    child.on('close', (code, signal) => {
      settle();
      const last = said.trimEnd().split('\n').at(-1)!.trim();
      const why = signal === null ? last : `ended by ${signal}${last === '' ? '' : `, ${last}`}`;
      resolve({ code, said: why });
    });
  });
}

export function kernelArguments(step: KernelStep): string[] {
  return ['--json', 'scan', ...shapeArguments(step)];
}

export function torchArguments(step: KernelStep): string[] {
  return [TORCH_SCRIPT, ...shapeArguments(step)];
}

function shapeArguments({ rowCount, dimension, batches, ks, filters, seconds }: KernelStep) {
  const options = { rows: rowCount, dimension, batches, ks, filters, seconds };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

export interface DriverFacts {
  readonly driverVersion: string;
  readonly memoryBytes: number;
  readonly freeBytes: number;
  readonly watts: string;
}

/** Null where nvidia-smi is not there or knows nothing. */
export async function askDriver(): Promise<DriverFacts | null> {
  // The first that CUDA sees; a name of a GPU is as good as its number.
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

/** Of a line `580.65.06, 143771, 143250, 700.00`, in MiB and watts; null for anything else. */
export function parseDriver(text: string): DriverFacts | null {
  const [driverVersion, total, free, watts] = text
    .trim()
    .split(',')
    .map((part) => part.trim());
  const [memoryBytes, freeBytes] = [Number(total) * 2 ** 20, Number(free) * 2 ** 20];
  if (!driverVersion || watts === undefined || !(memoryBytes > 0 && freeBytes >= 0)) return null;
  return { driverVersion, memoryBytes, freeBytes, watts };
}

export function measureMemory(driver: DriverFacts | null): Memory {
  // A container's bound counts, too.
  const hostBytes = Math.min(freemem(), process.availableMemory());
  return { hostBytes, deviceBytes: driver?.freeBytes ?? null };
}
