// Asks V8 for a collection where much shared memory was just let go: V8 does not count shared
// buffers, so without a hint outgrown ones stay resident until other garbage happens to pile up.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/** Collects soon, off the caller's stack; some 20 ms of work, so not to be called per request. */
export function collectGarbageSoon(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  setImmediate(collect).unref();
}
