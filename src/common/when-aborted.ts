// Runs functions when a signal aborts. Each signal gets at most one listener, however many functions wait for it: a
// request may wait for hundreds of filters at once, and Node warns of a leak from the eleventh listener on.

interface Waiters {
  readonly functions: Set<() => void>;
  readonly runAll: () => void;
}

/** A member of the signal, since V8 takes microseconds to add a signal to a WeakMap. */
const WAITERS = Symbol('waiters');

type WatchedSignal = AbortSignal & { [WAITERS]?: Waiters | undefined };

/**
 * Calls `run` when the signal aborts, unless the returned function is called first. Does not call it if the signal has
 * already aborted.
 */
export function whenAborted(signal: WatchedSignal | undefined, run: () => void): () => void {
  if (signal === undefined) return () => {};
  const waiters = signal[WAITERS] ?? listen(signal);
  // Each call gets its own function, because the same `run` may be registered twice.
  const waiter = () => run();
  waiters.functions.add(waiter);
  return () => {
    const wasWaiting = waiters.functions.delete(waiter);
    if (wasWaiting && waiters.functions.size === 0) unlisten(signal, waiters);
  };
}

/**
 * Resolves like the promise, unless the signal aborts first; then it calls `stop` and rejects with the signal's reason.
 */
export function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
  stop: () => void = () => {},
): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const ignoreAbort = whenAborted(signal, () => {
      stop();
      reject(signal.reason);
    });
    promise.then(resolve, reject).finally(ignoreAbort);
  });
}

function listen(signal: WatchedSignal): Waiters {
  const functions = new Set<() => void>();
  const runAll = () => {
    for (const run of functions) run();
  };
  const waiters = { functions, runAll };
  signal[WAITERS] = waiters;
  signal.addEventListener('abort', runAll);
  return waiters;
}

function unlisten(signal: WatchedSignal, { runAll }: Waiters): void {
  signal.removeEventListener('abort', runAll);
  signal[WAITERS] = undefined;
}
