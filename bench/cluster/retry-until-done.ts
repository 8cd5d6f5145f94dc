// Retries operations that a cluster may refuse for a while although nothing is wrong: a write while no node
// owns the log, or a request to NATS servers that are electing a leader.

import { setTimeout as sleep } from 'node:timers/promises';

const MS_MAX = 300_000;
const PAUSE_MS = 100;

/** Repeats an operation until it succeeds. Rejects after five minutes. */
export async function retryUntilDone<Done>(attempt: () => Promise<Done>): Promise<Done> {
  const deadlineMs = performance.now() + MS_MAX;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
