// Runs each decoder for a share of the time in separate threads and reports unexpected errors, values that differ from
// those of a second decoder, hangs, and excessive memory.

import { Worker } from 'node:worker_threads';
import { DECODERS } from './decoders.js';
import type { Part, WorkerInput, WorkerReport } from './worker.js';

export interface DecoderReport {
  readonly name: string;
  caseCount: number;
  readonly outcomes: Record<string, number>;
  readonly faults: string[];
}

/** An input takes milliseconds; a busy machine may delay it. */
const CASE_MS_MAX = 60_000;
const LOOK_MS = 1_000;
/** Some libraries keep files open, or memory that only grows, as long as their thread runs. */
const THREAD_MS_MAX = 10_000;
/** More inputs than a thread processes. */
const CASES_OF_THREAD = 10_000_000;

export async function fuzzDecoders(options: {
  readonly seed: number;
  /** Total time for all decoders. */
  readonly durationMs: number;
  /** Part of the names of the decoders to run; all if absent. */
  readonly only?: string | undefined;
  readonly firstCase?: number;
}): Promise<readonly DecoderReport[]> {
  const { seed, durationMs, only = '', firstCase = 0 } = options;
  const chosen = [...DECODERS.entries()].filter(([, { name }]) => name.includes(only));
  const reports = new Map<number, DecoderReport>();
  for (const [index, { name }] of chosen) {
    reports.set(index, { name, caseCount: 0, outcomes: {}, faults: [] });
  }
  const indexes = chosen.map(([index]) => index);
  for (const parts of partsByThread(indexes, durationMs / chosen.length, firstCase)) {
    const current = new SharedArrayBuffer(8);
    for (const found of await runWorker({ seed, parts, current })) {
      add(reports.get(found.decoderIndex)!, found);
    }
  }
  return [...reports.values()];
}

/** Parts for the same thread run one after another. */
function partsByThread(indexes: readonly number[], durationMs: number, firstCase: number) {
  const threads: Part[][] = [];
  let leftMs = 0;
  for (const decoderIndex of indexes) {
    for (let startMs = 0, slice = 0; startMs < durationMs; startMs += THREAD_MS_MAX, slice++) {
      const partMs = Math.min(durationMs - startMs, THREAD_MS_MAX);
      if (partMs > leftMs) {
        threads.push([]);
        leftMs = THREAD_MS_MAX;
      }
      const first = firstCase + slice * CASES_OF_THREAD;
      threads.at(-1)!.push({ decoderIndex, firstCase: first, durationMs: partMs });
      leftMs -= partMs;
    }
  }
  return threads;
}

function add(report: DecoderReport, { caseCount, outcomes, faults }: WorkerReport): void {
  report.caseCount += caseCount;
  report.faults.push(...faults);
  for (const [outcome, count] of Object.entries(outcomes)) {
    report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + count;
  }
}

/** If the thread hangs or ends early, only that is reported. */
async function runWorker(input: WorkerInput): Promise<readonly WorkerReport[]> {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: input });
  const current = new Int32Array(input.current);
  return await new Promise<readonly WorkerReport[]>((resolve) => {
    const fail = (what: string) => {
      const [decoderIndex, caseIndex] = [Atomics.load(current, 0), Atomics.load(current, 1)];
      const fault = `${DECODERS[decoderIndex]!.name}, case ${caseIndex}: ${what}`;
      resolve([{ decoderIndex, caseCount: 0, outcomes: {}, faults: [fault] }]);
    };
    let last = '';
    let sinceMs = performance.now();
    const watching = setInterval(() => {
      const now = current.join();
      if (now !== last) {
        last = now;
        sinceMs = performance.now();
      } else if (performance.now() - sinceMs > CASE_MS_MAX) {
        fail(`it takes more than ${CASE_MS_MAX} ms`);
      }
    }, LOOK_MS);
    worker.once('message', resolve);
    worker.once('error', (error) => fail(`the thread ended: ${error.stack}`));
    worker.once('exit', (code) => fail(`the thread ended with ${code}`));
    worker.once('exit', () => clearInterval(watching));
  }).finally(() => worker.terminate());
}
