// Continuous batching and admission: while the engine works, arriving work waits together and goes
// as the next batch, grouped by target. No timer, so no added latency when idle and a full batch
// under load. Knows neither queries nor engines; what a target or an item is, is its caller's.

import { assert, SagittaError } from '../errors.js';

/** One piece of work for each item; the items of one target go to `run` together. */
export interface Work<Target, Item> {
  readonly target: Target;
  readonly item: Item;
}

export interface BatcherOptions<Target, Item, Result> {
  /** Gives one result an item, in order. Called for all targets of a batch at once. */
  readonly run: (target: Target, items: readonly Item[]) => Promise<Result[]>;
  /** Of two targets with one key, the one on which the items of both can run. */
  readonly merge: (left: Target, right: Target) => Target;
  /** Submissions that may wait; a longer queue only adds latency. */
  readonly waitingMax: number;
  /** Items in one batch: more fill the engine better and let the next batch wait longer. A submission with more goes alone. */
  readonly batchItemsMax?: number;
}

export interface Batcher<Target, Item, Result> {
  /** Submissions that wait, for metrics. */
  readonly waitingCount: number;
  /**
   * Resolves to one result for each piece of work, in order. Rejects with `overloaded` at once when
   * too many submissions wait, with the signal's reason when it aborts, and with what `run` rejects
   * with.
   */
  submit(
    work: readonly Work<Target, Item>[],
    options?: { signal?: AbortSignal },
  ): Promise<Result[]>;
}

/** A few milliseconds of work for most engines and dimensions. */
const BATCH_ITEMS_MAX = 4_096;

/** Waiting clears within a batch or two. */
const RETRY_AFTER_SECONDS = 1;

interface Submission<Target, Item, Result> {
  readonly work: readonly Work<Target, Item>[];
  readonly results: Result[];
  missingCount: number;
  isSettled: boolean;
  resolve(results: Result[]): void;
  reject(reason: unknown): void;
}

/** All items of one target in a batch, and where their results belong. */
interface Group<Target, Item, Result> {
  target: Target;
  readonly items: Item[];
  readonly places: { submission: Submission<Target, Item, Result>; index: number }[];
}

export function createBatcher<Target extends { readonly key: string }, Item, Result>(
  options: BatcherOptions<Target, Item, Result>,
): Batcher<Target, Item, Result> {
  const { run, merge, waitingMax, batchItemsMax = BATCH_ITEMS_MAX } = options;
  /** In order of arrival, which is the order of service: nobody is overtaken. */
  const waiting = new Set<Submission<Target, Item, Result>>();
  let isRunning = false;

  return {
    get waitingCount() {
      return waiting.size;
    },
    submit(work, { signal } = {}) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        if (work.length === 0) {
          resolve([]);
          return;
        }
        if (waiting.size >= waitingMax) throw overloaded(waiting.size);
        const submission = createSubmission(work, resolve, reject, signal);
        waiting.add(submission);
        if (isRunning) return;
        isRunning = true;
        // Whatever else is submitted in this turn of the event loop shares the first batch.
        queueMicrotask(runBatches);
      });
    },
  };

  function createSubmission(
    work: readonly Work<Target, Item>[],
    resolve: (results: Result[]) => void,
    reject: (reason: unknown) => void,
    signal: AbortSignal | undefined,
  ): Submission<Target, Item, Result> {
    const onAbort = () => {
      waiting.delete(submission);
      submission.reject(signal!.reason);
    };
    const settle = () => {
      submission.isSettled = true;
      signal?.removeEventListener('abort', onAbort);
    };
    const submission: Submission<Target, Item, Result> = {
      work,
      results: new Array<Result>(work.length),
      missingCount: work.length,
      isSettled: false,
      resolve(results) {
        settle();
        resolve(results);
      },
      reject(reason) {
        settle();
        reject(reason);
      },
    };
    signal?.addEventListener('abort', onAbort);
    return submission;
  }

  async function runBatches(): Promise<void> {
    while (waiting.size > 0) {
      const groups = groupByTarget(takeBatch());
      await Promise.all([...groups.values()].map(runGroup));
    }
    isRunning = false;
  }

  /** The submissions that have waited longest, as many as fit. */
  function takeBatch(): Submission<Target, Item, Result>[] {
    const batch: Submission<Target, Item, Result>[] = [];
    let itemCount = 0;
    for (const submission of waiting) {
      itemCount += submission.work.length;
      if (itemCount > batchItemsMax && batch.length > 0) break;
      batch.push(submission);
      waiting.delete(submission);
    }
    return batch;
  }

  function groupByTarget(
    batch: readonly Submission<Target, Item, Result>[],
  ): Map<string, Group<Target, Item, Result>> {
    const groups = new Map<string, Group<Target, Item, Result>>();
    for (const submission of batch) {
      for (const [index, { target, item }] of submission.work.entries()) {
        const group = groups.get(target.key);
        if (group === undefined) {
          groups.set(target.key, { target, items: [item], places: [{ submission, index }] });
          continue;
        }
        group.target = merge(group.target, target);
        group.items.push(item);
        group.places.push({ submission, index });
      }
    }
    return groups;
  }

  /** Never rejects: a failure belongs to the submissions in the group. */
  async function runGroup({ target, items, places }: Group<Target, Item, Result>): Promise<void> {
    try {
      const results = await run(target, items);
      assert(results.length === items.length, 'a run gives one result an item');
      for (const [i, { submission, index }] of places.entries()) {
        submission.results[index] = results[i]!;
        submission.missingCount--;
        if (submission.missingCount === 0 && !submission.isSettled) {
          submission.resolve(submission.results);
        }
      }
    } catch (error) {
      for (const { submission } of places) {
        if (!submission.isSettled) submission.reject(error);
      }
    }
  }
}

function overloaded(waitingCount: number): SagittaError {
  return new SagittaError(
    'overloaded',
    `${waitingCount} searches wait for the engine, which is the most that may`,
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
