// Runs work on items in order and a little ahead: while one result is consumed, the next are computed.

/** Keeps the engine busy while replies are written. Results that are ahead take memory. */
const AHEAD_COUNT = 2;

/** Results in memory at once: those ahead, and the one that is consumed. */
export const PREFETCHED_COUNT = AHEAD_COUNT + 1;

/**
 * The results of `work` on each item, in the order of the items. At most two items are read and worked
 * on ahead of the consumer. The first error in that order ends it. When it ends early, it aborts the
 * signal that `work` was given and closes the source.
 */
export async function* prefetch<Item, Result>(
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): AsyncGenerator<Result, void, undefined> {
  const controller = new AbortController();
  const eitherSignal = AbortSignal.any([signal, controller.signal]);
  const iterator =
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let last: Promise<unknown> = Promise.resolve();
  // One item is read at a time, also from sources that allow concurrent reads.
  const start = (): Promise<{ readonly result: Result } | null> => {
    const reading = last.then(() => iterator.next());
    last = reading;
    const working = reading.then(async (next) =>
      next.done === true ? null : { result: await work(next.value, eitherSignal) },
    );
    // Awaited when the results before it have been consumed.
    working.catch(() => {});
    return working;
  };
  const started = Array.from({ length: AHEAD_COUNT }, start);
  try {
    for (;;) {
      const next = await started.shift()!;
      if (next === null) return;
      started.push(start());
      yield next.result;
    }
  } finally {
    controller.abort(new Error('the consumer has stopped'));
    // Not awaited: the source may be waiting for a client.
    Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
