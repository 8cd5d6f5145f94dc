// Waits at the start of a process for services that start later than it, or are electing a leader.

import { setTimeout as sleep } from 'node:timers/promises';
import { SagittaError } from './errors.js';
import { LogLimiter } from './log-limiter.js';
import type { Logger } from './logger.js';

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 2_000;
const LOG_MS = 10_000;
/** After this time, somebody should look at the services. */
const USUAL_SECONDS_MAX = 60;

/**
 * Repeats a step while it throws `no_leader`, and logs every ten seconds why. Rejects with any other error of the step,
 * and with the reason of `stopping`.
 */
export async function untilAvailable<Result>(
  step: () => Promise<Result>,
  { logger, stopping }: { readonly logger: Logger; readonly stopping: AbortSignal | undefined },
): Promise<Result> {
  const startedAtMs = performance.now();
  const lines = new LogLimiter({ intervalMs: LOG_MS });
  for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, 2 * pauseMs)) {
    stopping?.throwIfAborted();
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof SagittaError) || error.code !== 'no_leader') throw error;
      const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
      const attempts = lines.next();
      const details = { seconds, attempts, reason: error.message };
      const text = 'waiting for the services that the nodes share; requests get 503 until then';
      if (attempts > 0 && seconds < USUAL_SECONDS_MAX) logger.info(details, text);
      else if (attempts > 0) logger.warn(details, text);
    }
    await sleep(pauseMs, undefined, stopping && { signal: stopping }).catch(() => {});
  }
}
