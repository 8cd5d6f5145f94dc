// The single writer of a collection. Writes that wait while a commit is written to disk form the next
// commit (group commit), without a timer and without delay when idle. Each write is prepared against
// the state after the previous writes, committed, and then applied to memory, so that everything a
// reader sees is on disk or in a shared log. A write that is refused because of previous writes
// rejects after their commit. Commits of other nodes take the same path, but are only stored.

import { overloadedError } from '../../common/errors.js';
import type { VectorBatch } from '../../common/types.js';
import type { CommitLog } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { CommitTimings } from '../api/database-api.js';
import type { DatabaseObserver } from '../api/observer.js';

export interface RecordMark {
  readonly sequence: number;
  /** When the record was written, by the clock of the node that wrote it. */
  readonly timeMs: number;
}

/** A write with its sequence. */
export interface PreparedWrite<Result> {
  /** The last record, whose sequences begin at the offered one; absent for a write without records. */
  readonly last?: RecordMark;
  readonly operations: readonly StoreOperation[];
  /** The log that the operations are committed to; by default that of the collection. */
  readonly log?: CommitLog;
  /** The rows that the write adds. */
  readonly batches?: readonly VectorBatch[];
  readonly result: Result;
  /** Changes memory. Runs after the commit, in the order of the writes, and must not throw. */
  apply(): void;
  /** Runs when the store of this process also contains the operations, so that their memory may be reused. */
  release?(): void;
}

/** A commit of another node that was applied to memory. */
export interface Followed {
  /** Rejects if the store could not accept the commit. */
  readonly stored: Promise<void>;
}

/** The ids that writes of the current commit change, with the sequence of the write, or 0 for a deletion. */
export type PendingIds = Map<string, number>;

export interface Write<Result> {
  /**
   * The ids of the vectors that the write reads. While one of them is in `pending`, this write and later ones wait for
   * the next commit. A write that reads all is alone in its commit.
   */
  readonly reads?: readonly string[] | 'all';
  /**
   * An error rejects the write, which then has no effect. Adds the ids of the write to
   * `pending`, unless it reads all.
   */
  prepare(
    sequence: number,
    pending: PendingIds,
  ): PreparedWrite<Result> | Promise<PreparedWrite<Result>>;
  /** Called when the write fails, before later writes are prepared and before its promise rejects. */
  failed?(error: unknown): void;
}

interface PendingWrite {
  readonly write: Write<unknown>;
  /** Whether another node has already committed the write. */
  readonly isCommitted: boolean;
  readonly submittedAtMs: number;
  readonly onCommitted: ((timings: CommitTimings) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Larger commits gain nothing and delay their first write. */
const COMMIT_BYTES_MAX = 32 * 1024 * 1024;

interface WriterOptions {
  readonly log: CommitLog;
  /** Stores the commits of other nodes. */
  readonly store: Store;
  /** The last sequence in use. */
  readonly sequence: number;
  /** Called after a commit with records was applied, with the last record that is now visible. */
  readonly onApplied: (last: RecordMark) => void;
  /** The number of writes that may wait. Nothing else bounds writes without a body, such as deletes. */
  readonly waitingMax: number;
  readonly observer: DatabaseObserver;
  /** Throws if the rows that a write was prepared from are damaged, so that it is not committed. */
  readonly requireIntact: () => void;
  /** Delays a commit; undefined for no delay. */
  readonly whenRoom: () => Promise<void> | undefined;
  /** Prepares memory for rows that will be applied in this order, in the pool; undefined for no work. Never rejects. */
  readonly stage: (batches: readonly VectorBatch[]) => Promise<void> | undefined;
}

export class Writer {
  readonly #options: WriterOptions;
  #sequence: number;
  #waiting: PendingWrite[] = [];
  #running: Promise<void> | undefined;
  #closedWith: Error | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#sequence = options.sequence;
  }

  /** `onCommitted` is called when the write is on disk, before the promise resolves. */
  submit<Result>(
    write: Write<Result>,
    onCommitted?: (timings: CommitTimings) => void,
  ): Promise<Result> {
    const error = this.#admissionError();
    if (error !== undefined) {
      write.failed?.(error);
      return Promise.reject(error);
    }
    return this.#enqueue(write, { isCommitted: false, onCommitted });
  }

  /** Submits a write that another node has committed; it is applied while it is being stored. */
  submitCommitted(write: Write<void>): Promise<Followed> {
    if (this.#closedWith !== undefined) return Promise.reject(this.#closedWith);
    return this.#enqueue<unknown>(write, {
      isCommitted: true,
      onCommitted: undefined,
    }) as Promise<Followed>;
  }

  #enqueue<Result>(
    write: Write<Result>,
    options: Pick<PendingWrite, 'isCommitted' | 'onCommitted'>,
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({
        write,
        ...options,
        submittedAtMs: performance.now(),
        resolve: resolve as (result: unknown) => void,
        reject,
      });
      this.#running ??= this.#run();
    });
  }

  #admissionError(): Error | undefined {
    if (this.#closedWith !== undefined) return this.#closedWith;
    const { waitingMax } = this.#options;
    if (this.#waiting.length < waitingMax) return undefined;
    return overloadedError(`Too many writes are waiting (limit ${waitingMax}).`);
  }

  /** Finishes the submitted writes; later ones reject with `reason`. */
  async close(reason: Error): Promise<void> {
    this.#closedWith ??= reason;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Writes that arrived in this iteration of the event loop share the first commit.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#commitNext();
    // No await may follow the last check of the queue, so that a later write starts a new run.
    this.#running = undefined;
  }

  async #commitNext(): Promise<void> {
    const { observer, requireIntact, stage, store, whenRoom } = this.#options;
    for (let room = whenRoom(); room !== undefined; room = whenRoom()) await room;
    const pending: PendingIds = new Map();
    const accepted: { pendingWrite: PendingWrite; prepared: PreparedWrite<unknown> }[] = [];
    const refused: { pendingWrite: PendingWrite; error: unknown }[] = [];
    const operations: StoreOperation[] = [];
    const { isCommitted } = this.#waiting[0]!;
    let log = this.#options.log;
    let last: RecordMark | undefined;
    let byteCount = 0;
    while (this.#waiting.length > 0 && byteCount < COMMIT_BYTES_MAX) {
      const next = this.#waiting[0]!;
      if (next.isCommitted !== isCommitted) break;
      if (accepted.length > 0 && mustWait(next.write, pending)) break;
      this.#waiting.shift();
      try {
        const preparing = next.write.prepare((last?.sequence ?? this.#sequence) + 1, pending);
        const prepared = preparing instanceof Promise ? await preparing : preparing;
        last = prepared.last ?? last;
        log = prepared.log ?? log;
        accepted.push({ pendingWrite: next, prepared });
        for (const operation of prepared.operations) {
          operations.push(operation);
          if (operation.kind === 'append') byteCount += operation.record.byteLength;
        }
      } catch (error) {
        next.write.failed?.(error);
        // The refusal may reveal accepted writes, which must not be visible before they are on disk.
        if (accepted.length > 0) refused.push({ pendingWrite: next, error });
        else next.reject(error);
        continue;
      }
      if (next.write.reads === 'all') break;
    }
    const batches = accepted.flatMap(({ prepared }) => prepared.batches ?? []);
    const staging = stage(batches);
    const startedAtMs = performance.now();
    let stored: Promise<void> | undefined;
    try {
      requireIntact();
      if (isCommitted) stored = store.commit(operations);
      else if (operations.length > 0) await log.commit(operations);
    } catch (error) {
      // The caller may reuse the memory of its batch once the write has failed.
      await staging;
      observer.count('sagitta_commit_failures_total', 1);
      for (const { pendingWrite } of accepted) fail(pendingWrite, error);
      // The writes that they were refused for did not take effect.
      for (const { pendingWrite } of refused) pendingWrite.reject(error);
      return;
    }
    const commitMs = performance.now() - startedAtMs;
    await staging;
    // A checkpoint may have sealed the segment since; its rows then go to the next one and are staged again.
    if (staging !== undefined) await stage(batches);
    if (operations.length > 0) {
      observer.count('sagitta_writes_committed_total', accepted.length);
      observer.observe('sagitta_commit_seconds', commitMs / 1000);
    }
    for (const { prepared } of accepted) prepared.apply();
    if (last !== undefined) {
      this.#sequence = last.sequence;
      this.#options.onApplied(last);
    }
    stored ??= log.whenStored();
    void releaseWhen(
      stored,
      accepted.map(({ prepared }) => prepared),
    );
    for (const { pendingWrite, prepared } of accepted) {
      const { submittedAtMs, onCommitted, resolve } = pendingWrite;
      onCommitted?.({ submittedAtMs, waitMs: startedAtMs - submittedAtMs, commitMs });
      resolve(isCommitted ? { stored } : prepared.result);
    }
    for (const { pendingWrite, error } of refused) pendingWrite.reject(error);
  }
}

function mustWait({ reads = [] }: Write<unknown>, pending: PendingIds): boolean {
  return reads === 'all' || reads.some((id) => pending.has(id));
}

async function releaseWhen(
  stored: Promise<void> | undefined,
  writes: readonly PreparedWrite<unknown>[],
): Promise<void> {
  try {
    if (stored !== undefined) await stored;
  } catch {
    // The store may still read it.
    return;
  }
  for (const write of writes) write.release?.();
}

function fail({ write, reject }: PendingWrite, error: unknown): void {
  write.failed?.(error);
  reject(error);
}
