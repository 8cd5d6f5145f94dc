// A thread that feeds inputs to decoders. It first writes the number of each input to shared memory, so that its parent
// can tell on which one it hangs.

import { parentPort, workerData } from 'node:worker_threads';
import { Cases } from './cases.js';
import { DECODERS, removeTemporaryFiles } from './decoders.js';

/** Inputs for one decoder. */
export interface Part {
  readonly decoderIndex: number;
  readonly firstCase: number;
  readonly durationMs: number;
}

export interface WorkerInput {
  readonly seed: number;
  readonly parts: readonly Part[];
  /** Two int32: the index of the current decoder and the number of its current input. */
  readonly current: SharedArrayBuffer;
}

/** The result of a part. */
export interface WorkerReport {
  readonly decoderIndex: number;
  readonly caseCount: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

/** Memory that an input of some kilobytes may take at most. */
const GROWTH_BYTES_MAX = 256 * 1_024 * 1_024;
const FAULTS_MAX = 10;

async function run(part: Part, seed: number, current: Int32Array): Promise<WorkerReport> {
  const { decoderIndex, firstCase, durationMs } = part;
  Atomics.store(current, 0, decoderIndex);
  const decoder = DECODERS[decoderIndex]!;
  const cases = new Cases(decoder, seed);
  const outcomes: Record<string, number> = {};
  const faults: string[] = [];
  const endMs = performance.now() + durationMs;
  let index = firstCase;
  for (; performance.now() < endMs && faults.length < FAULTS_MAX; index++) {
    Atomics.store(current, 1, index);
    const bytes = cases.make(index);
    const bytesBefore = process.resourceUsage().maxRSS * 1_024;
    let outcome: string;
    try {
      outcome = await decoder.decode(bytes);
    } catch (error) {
      outcome = 'refused';
      if (!decoder.isRefusal(error)) {
        outcome = 'fault';
        faults.push(`${decoder.name}, case ${index}: ${(error as Error).stack}`);
      }
    }
    const growth = process.resourceUsage().maxRSS * 1_024 - bytesBefore;
    if (growth > GROWTH_BYTES_MAX) {
      faults.push(`${decoder.name}, case ${index}: ${bytes.length} bytes took ${growth} bytes`);
    }
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  return { decoderIndex, caseCount: index - firstCase, outcomes, faults };
}

const { seed, parts, current } = workerData as WorkerInput;
const reports: WorkerReport[] = [];
for (const part of parts) reports.push(await run(part, seed, new Int32Array(current)));
removeTemporaryFiles();
parentPort!.postMessage(reports);
