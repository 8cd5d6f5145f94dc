// Simulates seeds in threads. Each thread goes on with the next seed, so a result must not depend on the seeds before it.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Simulated } from './simulate.js';

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

/** Calls `onResult` with the result of each seed, in any order, until it returns false. */
export async function simulateAll(
  seeds: Iterable<number>,
  threadCount: number,
  onResult: (result: Simulated) => boolean,
): Promise<void> {
  const remaining = seeds[Symbol.iterator]();
  let isOver = false;
  const work = async () => {
    const thread = new SeedThread();
    try {
      for (let next = remaining.next(); !isOver && next.done !== true; next = remaining.next()) {
        if (!onResult(await thread.simulate(next.value))) isOver = true;
      }
    } finally {
      await thread.close();
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
