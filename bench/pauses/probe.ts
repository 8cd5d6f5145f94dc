// Loaded into a server process before its program: measures iterations of the event loop between two SIGUSR2
// signals, the second of which prints them as a line of JSON. While it measures, the loop does not wait for
// events, so that an iteration takes as long as its work. Linux only.

import { openSync, readSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

export interface Pauses {
  /** The longest iteration in milliseconds, without the time spent waiting for a processor. */
  readonly longestMs: number;
  /** Iterations that took more than 2 ms. */
  readonly longCount: number;
}

const LONG_MS = 2;

// Threads of the pool load this file, too.
if (isMainThread) {
  let end: (() => Pauses) | null = null;
  process.on('SIGUSR2', () => {
    if (end === null) end = measure();
    else {
      process.stdout.write(`${JSON.stringify(end())}\n`);
      end = null;
    }
  });
}

function measure(): () => Pauses {
  let longestMs = 0;
  let longCount = 0;
  let last = nowMs();
  let isOn = true;
  const tick = () => {
    if (!isOn) return;
    const now = nowMs();
    longestMs = Math.max(longestMs, now - last);
    if (now - last > LONG_MS) longCount++;
    last = now;
    setImmediate(tick);
  };
  setImmediate(tick);
  return () => {
    isOn = false;
    return { longestMs, longCount };
  };
}

let schedstat: number | undefined;
const bytes = Buffer.alloc(64);

/** A clock that stops while the main thread waits for a processor used by others. */
function nowMs(): number {
  schedstat ??= openSync('/proc/self/schedstat', 'r');
  const length = readSync(schedstat, bytes, 0, bytes.length, 0);
  const waitedNs = Number(bytes.toString('latin1', 0, length).split(' ')[1]);
  return performance.now() - waitedNs / 1e6;
}
