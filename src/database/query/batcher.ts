// Continuous batching and admission: while the engine works, arriving work waits together and goes
// as the next batch. No timer, so no added latency when idle and a full batch under load. Knows
// neither queries nor engines; what an item is, is its caller's.

import { assert, SagittaError } from '../../common/errors.js';

export interface BatcherOptions<Item, Result> {
  /**
   * Gives one result an item, in order. The signal aborts when nobody waits for any of them any
   * more; the next batch starts when the promise settles, whatever the signal says.
   */
  readonly run: (items: readonly Item[], signal: AbortSignal) => Promise<Result[]>;
  /** Submissions that may wait; a longer queue only adds latency. */
  readonly waitingMax: number;
  /** Items in one batch: more fill the engine better and let the next batch wait longer. A submission with more goes alone. */
  readonly batchItemsMax?: number;
}

export interface Batcher<Item, Result> {
  /** Submissions that wait, for metrics. */
  readonly waitingCount: number;
  /**
   * Resolves to one result an item, in order. Rejects with `overloaded` at once when too many
   * submissions wait, with the signal's reason when it aborts, and with what `run` rejects with.
   */
  submit(items: readonly Item[], options?: SubmitOptions): Promise<Result[]>;
}

export interface SubmitOptions {
  readonly signal?: AbortSignal;
  /** Called when its batch begins: the end of its wait. */
  readonly onBegin?: () => void;
}

/** Several times what it takes to be bound by arithmetic instead of memory; beyond, only waiting grows. */
const BATCH_ITEMS_MAX = 1_024;

/** Waiting clears within a batch or two. */
const RETRY_AFTER_SECONDS = 1;

interface Submission<Item, Result> {
  readonly items: readonly Item[];
  /** The batch that it is in; null while it waits. */
  batch: Batch<Item, Result> | null;
  isSettled: boolean;
  readonly onBegin: (() => void) | undefined;
  resolve(results: Result[]): void;
  reject(reason: unknown): void;
}

interface Batch<Item, Result> {
  readonly submissions: readonly Submission<Item, Result>[];
  /** Aborts when every submission has been given up. */
  readonly controller: AbortController;
}

export function createBatcher<Item, Result>(
  options: BatcherOptions<Item, Result>,
): Batcher<Item, Result> {
  const { run, waitingMax, batchItemsMax = BATCH_ITEMS_MAX } = options;
  /** In order of arrival, which is the order of service: nobody is overtaken. */
  const waiting = new Set<Submission<Item, Result>>();
  let isRunning = false;

  return {
    get waitingCount() {
      return waiting.size;
    },
    submit(items, { signal, onBegin } = {}) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        if (items.length === 0) {
          resolve([]);
          return;
        }
        if (waiting.size >= waitingMax) throw overloaded(waiting.size);
        waiting.add(createSubmission(items, { resolve, reject, signal, onBegin }));
        if (isRunning) return;
        isRunning = true;
        // Whatever else is submitted in this turn of the event loop shares the first batch.
        queueMicrotask(runBatches);
      });
    },
  };

  function createSubmission(
    items: readonly Item[],
    {
      resolve,
      reject,
      signal,
      onBegin,
    }: {
      resolve: (results: Result[]) => void;
      reject: (reason: unknown) => void;
      signal: AbortSignal | undefined;
      onBegin: (() => void) | undefined;
    },
  ): Submission<Item, Result> {
    const onAbort = () => {
      waiting.delete(submission);
      submission.reject(signal!.reason);
      const { batch } = submission;
      if (batch?.submissions.every(({ isSettled }) => isSettled)) {
        batch.controller.abort(signal!.reason);
      }
    };
    const settle = () => {
      submission.isSettled = true;
      signal?.removeEventListener('abort', onAbort);
    };
    const submission: Submission<Item, Result> = {
      items,
      batch: null,
      isSettled: false,
      onBegin,
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
    while (waiting.size > 0) await runBatch(takeBatch());
    isRunning = false;
  }

  /** The submissions that have waited longest, as many as fit. */
  function takeBatch(): Batch<Item, Result> {
    const submissions: Submission<Item, Result>[] = [];
    const batch = { submissions, controller: new AbortController() };
    let itemCount = 0;
    for (const submission of waiting) {
      itemCount += submission.items.length;
      if (itemCount > batchItemsMax && submissions.length > 0) break;
      submissions.push(submission);
      submission.batch = batch;
      waiting.delete(submission);
      submission.onBegin?.();
    }
    return batch;
  }

  /** Never rejects: a failure belongs to the submissions in the batch. */
  async function runBatch({ submissions, controller }: Batch<Item, Result>): Promise<void> {
    try {
      const items = submissions.flatMap((submission) => submission.items);
      const results = await run(items, controller.signal);
      assert(results.length === items.length, 'a run gives one result an item');
      let start = 0;
      for (const submission of submissions) {
        const end = start + submission.items.length;
        if (!submission.isSettled) submission.resolve(results.slice(start, end));
        start = end;
      }
    } catch (error) {
      for (const submission of submissions) {
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
