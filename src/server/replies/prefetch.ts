// Work in order, a little ahead: while one result is taken, the next ones are in the making.

/** Enough to keep the engine at work while answers are written; what is ahead is held in memory. */
const AHEAD_COUNT = 2;

/**
 * The results of `work` on each item, in the order of the items. Items are read, and worked on, at
 * most two ahead of whoever takes the results. What fails first in that order ends it; when it ends
 * early, the signal that the work was given aborts, and the source is let go of.
 */
export async function* inTurn<Item, Result>(
  items: AsyncIterable<Item> | Iterable<Item>,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): AsyncGenerator<Result, void, undefined> {
  const controller = new AbortController();
  const eitherSignal = AbortSignal.any([signal, controller.signal]);
  const iterator =
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let last: Promise<unknown> = Promise.resolve();
  // One reading at a time, whatever the source makes of several.
  const start = (): Promise<{ readonly result: Result } | null> => {
    const reading = last.then(() => iterator.next());
    last = reading;
    const working = reading.then(async (next) =>
      next.done === true ? null : { result: await work(next.value, eitherSignal) },
    );
    // It is looked at when its turn comes.
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
    controller.abort(new Error('nobody takes the results'));
    // Not waited for: the source may wait for a client.
    Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
