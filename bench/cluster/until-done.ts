// What a cluster may refuse for a while although nothing is wrong: a write while no node owns the log, a request to NATS
// servers that elect a leader.

import { setTimeout as sleep } from 'node:timers/promises';

const MS_MAX = 300_000;
const PAUSE_MS = 100;

/** Repeats what can be repeated until it succeeds; Rejects after five minutes. */
export async function untilDone<Done>(attempt: () => Promise<Done>): Promise<Done> {
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
