// Collects garbage where much shared memory was released. V8 does not count shared buffers, so released ones
// would stay resident until enough other garbage accumulates.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Collects garbage soon, not in the current call. Takes about 20 ms: do not call it per request. */
export function collectGarbageSoon(): void {
  setImmediate(collectGarbage).unref();
}

/** Collects the garbage of this thread now. Takes a few milliseconds in a thread of the pool. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
