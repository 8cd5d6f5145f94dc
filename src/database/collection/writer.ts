// The one writer of a collection. Writes that wait while a commit is on its way to the disk go
// together as the next commit (group commit): no timer, no delay when idle, one fsync for many
// under load. Each write is prepared against the state that the writes before it will leave,
// committed, and only then applied to memory: what a reader sees is always on disk.

import { SagittaError } from '../../common/errors.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { CommitTimings } from '../api.js';
import type { DatabaseObserver } from '../observer.js';

/** What a write becomes once its place in the order is known. */
export interface PreparedWrite<Result> {
  /** Whether it takes the sequence that it was offered. */
  readonly takesSequence: boolean;
  readonly operations: readonly StoreOperation[];
  readonly result: Result;
  /** Changes memory; runs when the operations are on disk, in order, and must not throw. */
  apply(): void;
}

/** Ids that writes of the current commit touch, before memory knows: true for present, false for deleted. */
export type PendingIds = Map<string, boolean>;

export interface Write<Result> {
  /**
   * Whether it can be prepared although `pending` is not applied yet. If not, it waits for the next
   * commit, and those behind it too.
   */
  mayFollow(pending: PendingIds): boolean;
  /** True when nothing may be prepared after it in the same commit. */
  readonly endsCommit: boolean;
  /** Throws what the caller shall see; then nothing of it happens. Adds its ids to `pending`. */
  prepare(
    sequence: number,
    pending: PendingIds,
  ): PreparedWrite<Result> | Promise<PreparedWrite<Result>>;
  /** Told that nothing comes of it, before any write behind it is prepared. */
  failed?(error: unknown): void;
}

interface PendingWrite {
  readonly write: Write<unknown>;
  readonly submittedAtMs: number;
  readonly onCommitted: ((timings: CommitTimings) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A commit of more bytes gains nothing and holds up its first write. */
const COMMIT_BYTES_MAX = 32 * 1024 * 1024;

export class Writer {
  readonly #store: Store;
  readonly #onApplied: (sequence: number) => void;
  readonly #waitingMax: number;
  readonly #observer: DatabaseObserver;
  #sequence: number;
  #waiting: PendingWrite[] = [];
  #running: Promise<void> | undefined;
  #closedWith: Error | undefined;

  constructor(options: {
    store: Store;
    /** The last sequence in use. */
    sequence: number;
    /** Called after each commit was applied, with the last sequence that is now visible. */
    onApplied: (sequence: number) => void;
    /** Writes that may wait: those without a body, such as deletes, nothing else bounds. */
    waitingMax: number;
    observer: DatabaseObserver;
  }) {
    this.#store = options.store;
    this.#sequence = options.sequence;
    this.#onApplied = options.onApplied;
    this.#waitingMax = options.waitingMax;
    this.#observer = options.observer;
  }

  /** `onCommitted` is called when the write is on disk, before the promise resolves. */
  submit<Result>(
    write: Write<Result>,
    onCommitted?: (timings: CommitTimings) => void,
  ): Promise<Result> {
    const refusal = this.#refuse();
    if (refusal !== undefined) {
      write.failed?.(refusal);
      return Promise.reject(refusal);
    }
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({
        write,
        submittedAtMs: performance.now(),
        onCommitted,
        resolve: resolve as (result: unknown) => void,
        reject,
      });
      this.#running ??= this.#run();
    });
  }

  #refuse(): Error | undefined {
    if (this.#closedWith !== undefined) return this.#closedWith;
    return this.#waiting.length >= this.#waitingMax ? overloaded(this.#waiting) : undefined;
  }

  /** Finishes what was submitted; later submissions reject with `reason`. */
  async close(reason: Error): Promise<void> {
    this.#closedWith ??= reason;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Lets the writes that arrived in this turn of the event loop share the first commit.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#commitNext();
    // In the same turn as the last look at the queue: a write that comes later starts a new run.
    this.#running = undefined;
  }

  async #commitNext(): Promise<void> {
    const pending: PendingIds = new Map();
    const accepted: { waiting: PendingWrite; prepared: PreparedWrite<unknown> }[] = [];
    const operations: StoreOperation[] = [];
    let sequence = this.#sequence;
    let byteCount = 0;
    while (this.#waiting.length > 0 && byteCount < COMMIT_BYTES_MAX) {
      const waiting = this.#waiting[0]!;
      if (accepted.length > 0 && !waiting.write.mayFollow(pending)) break;
      this.#waiting.shift();
      try {
        const preparing = waiting.write.prepare(sequence + 1, pending);
        const prepared = preparing instanceof Promise ? await preparing : preparing;
        if (prepared.takesSequence) sequence++;
        accepted.push({ waiting, prepared });
        for (const operation of prepared.operations) {
          operations.push(operation);
          if (operation.kind === 'append') byteCount += operation.record.byteLength;
        }
      } catch (error) {
        fail(waiting, error);
        continue;
      }
      if (waiting.write.endsCommit) break;
    }
    const startedAtMs = performance.now();
    try {
      if (operations.length > 0) await this.#store.commit(operations);
    } catch (error) {
      this.#observer.commitFailed();
      for (const { waiting } of accepted) fail(waiting, error);
      return;
    }
    const commitMs = performance.now() - startedAtMs;
    if (operations.length > 0) this.#observer.writesCommitted(accepted.length, commitMs);
    for (const { prepared } of accepted) prepared.apply();
    this.#sequence = sequence;
    this.#onApplied(sequence);
    for (const { waiting, prepared } of accepted) {
      const { submittedAtMs, onCommitted } = waiting;
      onCommitted?.({ submittedAtMs, waitMs: startedAtMs - submittedAtMs, commitMs });
      waiting.resolve(prepared.result);
    }
  }
}

function fail({ write, reject }: PendingWrite, error: unknown): void {
  write.failed?.(error);
  reject(error);
}

function overloaded({ length }: readonly PendingWrite[]): SagittaError {
  return new SagittaError(
    'overloaded',
    `${length} writes wait for the collection's commit, which is the most that may.`,
    { retryAfterSeconds: 1 },
  );
}
