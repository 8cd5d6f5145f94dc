// Simulates seeds in threads. Each thread goes on with the next seed, so a result must not depend on the seeds before it.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Simulated, simulate } from './simulate.js';

/** Node keeps abort signals that were never aborted, and with them what the dead processes of a simulation had in memory. */
const SEEDS_PER_THREAD = 40;

export class SeedThread {
  readonly #worker = new Worker(new URL('seed-worker.js', import.meta.url));

  /** One at a time. */
  async simulate(seed: number): Promise<Simulated> {
    this.#worker.postMessage(seed);
    const [result] = (await once(this.#worker, 'message')) as [Simulated];
    return result;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/**
 * Calls `onResult` with the result of each seed, in any order, until it returns false. Without threads, the seeds are
 * simulated in this one.
 */
export async function simulateAll(
  seeds: Iterable<number>,
  threadCount: number,
  onResult: (result: Simulated) => boolean,
): Promise<void> {
  const remaining = seeds[Symbol.iterator]();
  let isOver = false;
  const simulateSome = async (countMax: number, run: (seed: number) => Promise<Simulated>) => {
    for (let count = 0; count < countMax && !isOver; count++) {
      const next = remaining.next();
      if (next.done === true || !onResult(await run(next.value))) isOver = true;
    }
  };
  if (threadCount === 0) {
    await simulateSome(Number.POSITIVE_INFINITY, simulate);
    return;
  }
  const work = async () => {
    while (!isOver) {
      const thread = new SeedThread();
      try {
        await simulateSome(SEEDS_PER_THREAD, (seed) => thread.simulate(seed));
      } finally {
        await thread.close();
      }
    }
  };
  await Promise.all(Array.from({ length: threadCount }, work));
}

export function* consecutive(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** What a person needs to look into a failure. */
export function describeFailure({ seed, failures, trace }: Simulated, linesMax: number): string {
  const lines = trace.slice(-linesMax);
  return [...lines, ...failures.map((failure) => `seed ${seed}: ${failure}`)].join('\n');
}
