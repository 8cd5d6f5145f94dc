// Runs the garbage collector after much shared memory was released. V8 does not count shared buffers, so they would
// otherwise stay resident until enough other garbage accumulates.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Pause after a requested collection, as a multiple of its duration: collections use at most 5 % of the thread's time.
 */
const PAUSE_PER_COLLECTION = 19;

let collect: (() => void) | undefined;
let isScheduled = false;
/** Earliest time of the next collection, by `performance.now`. */
let nextAtMs = 0;

/** Collects garbage soon, but not during the current call. Takes about 20 ms, so it must not be called per request. */
export function collectGarbageSoon(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(
    () => {
      isScheduled = false;
      const startedAtMs = performance.now();
      collectGarbage();
      const endedAtMs = performance.now();
      nextAtMs = endedAtMs + PAUSE_PER_COLLECTION * (endedAtMs - startedAtMs);
    },
    Math.max(0, nextAtMs - performance.now()),
  ).unref();
}

/** Collects the garbage of this thread immediately, which takes a few milliseconds in a pool thread. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
