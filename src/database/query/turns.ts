// Large groups of searches take turns before they queue for the engine, so that a query of somebody
// else waits for one or two of them and not for all that there are.

import type { SubmitSearches } from './search.js';

/** One is at work in the engine, and one is ready when it ends. */
const GROUPS_MAX = 2;
/** What is smaller holds nobody up for long. */
const GROUP_QUERIES_MIN = 32;

/** In order of arrival. Rejects with the signal's reason. */
export function inTurns(submitAll: SubmitSearches): SubmitSearches {
  const waiting = new Set<() => void>();
  let takenCount = 0;
  const take = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      signal?.throwIfAborted();
      if (takenCount < GROUPS_MAX) {
        takenCount++;
        resolve();
        return;
      }
      const goOn = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        waiting.delete(goOn);
        reject(signal!.reason);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      waiting.add(goOn);
    });
  const giveBack = () => {
    const [next] = waiting;
    if (next === undefined) {
      takenCount--;
      return;
    }
    // Its turn goes from hand to hand.
    waiting.delete(next);
    next();
  };
  return async (queries, options) => {
    if (queries.length < GROUP_QUERIES_MIN) return submitAll(queries, options);
    const startedAtMs = performance.now();
    await take(options.signal);
    const turnMs = performance.now() - startedAtMs;
    try {
      const { hits, waitMs } = await submitAll(queries, options);
      return { hits, waitMs: waitMs + turnMs };
    } finally {
      giveBack();
    }
  };
}
