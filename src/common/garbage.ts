// Collects garbage where much shared memory was released. V8 does not count shared buffers, so released ones
// would stay resident until enough other garbage accumulates.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collections that are asked for take a twentieth of the time of the thread at most. */
const REST_PER_COLLECTION = 19;

let collect: (() => void) | undefined;
let isScheduled = false;
/** By `performance.now`. */
let restsUntilMs = 0;

/** Collects garbage soon, not in the current call. Takes about 20 ms: do not call it per request. */
export function collectGarbageSoon(): void {
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(
    () => {
      isScheduled = false;
      const startedAtMs = performance.now();
      collectGarbage();
      const endedAtMs = performance.now();
      restsUntilMs = endedAtMs + REST_PER_COLLECTION * (endedAtMs - startedAtMs);
    },
    Math.max(0, restsUntilMs - performance.now()),
  ).unref();
}

/** Collects the garbage of this thread now. Takes a few milliseconds in a thread of the pool. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
