// Runs work on items in order and slightly ahead: while one result is consumed, the next ones are computed.

import { anySignal } from '../../common/cancel-signal.js';

/** Enough to keep the engine busy while replies are written. More would take memory. */
const AHEAD_COUNT = 2;

/** The number of results in memory: those ahead, and the one being consumed. */
export const PREFETCHED_COUNT = AHEAD_COUNT + 1;

/**
 * The results of `work` on each item, in the order of the items. At most two items are processed ahead of the consumer.
 * The first error in that order is thrown. An early end aborts the signal that `work` was given and closes the source.
 */
export async function* prefetch<Item, Result>(
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): AsyncGenerator<Result, void, undefined> {
  const controller = new AbortController();
  const eitherSignal = anySignal([signal, controller.signal]);
  const iterator =
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let last: Promise<unknown> = Promise.resolve();
  // Items are read one at a time, even from sources that allow concurrent reads.
  const start = (): Promise<{ readonly result: Result } | null> => {
    const reading = last.then(() => iterator.next());
    last = reading;
    const working = reading.then(async (next) =>
      next.done === true ? null : { result: await work(next.value, eitherSignal) },
    );
    // Awaited when the previous results have been consumed.
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
    // Not awaited, since the source may be waiting for a client.
    Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
