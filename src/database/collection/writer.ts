// The single writer of a collection. Writes that wait while a commit is being written to disk become
// the next commit together (group commit): no timer, no delay when idle, one fsync for many writes
// under load. Each write is prepared against the state that the writes before it will leave,
// committed, and only then applied to memory: what a reader sees is always on disk. A write that is refused
// because of writes before it is told so when they are on disk, too.

import { overloadedError } from '../../common/errors.js';
import type { VectorBatch } from '../../common/types.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { CommitTimings } from '../api.js';
import type { DatabaseObserver } from '../observer.js';

/** A write that has been assigned its sequence. */
export interface PreparedWrite<Result> {
  /** Whether it uses the sequence that it was offered. */
  readonly takesSequence: boolean;
  readonly operations: readonly StoreOperation[];
  /** The rows that it adds, if any. */
  readonly batch?: VectorBatch;
  readonly result: Result;
  /** Changes memory; runs when the operations are on disk, in order, and must not throw. */
  apply(): void;
}

/**
 * Ids that writes of the current commit change, not applied to memory yet: the sequence of the write,
 * or 0 when it deletes the vector.
 */
export type PendingIds = Map<string, number>;

export interface Write<Result> {
  /**
   * Whether it can be prepared although `pending` is not applied yet. If not, it waits for the next
   * commit, and so do the writes behind it.
   */
  mayFollow(pending: PendingIds): boolean;
  /** True when nothing may be prepared after it in the same commit. */
  readonly endsCommit: boolean;
  /** Throws the error for the caller; then the write has no effect. Adds its ids to `pending`. */
  prepare(
    sequence: number,
    pending: PendingIds,
  ): PreparedWrite<Result> | Promise<PreparedWrite<Result>>;
  /** Called when the write fails, before any write behind it is prepared, and before its promise rejects. */
  failed?(error: unknown): void;
}

interface PendingWrite {
  readonly write: Write<unknown>;
  readonly submittedAtMs: number;
  readonly onCommitted: ((timings: CommitTimings) => void) | undefined;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A larger commit gains nothing and delays its first write. */
const COMMIT_BYTES_MAX = 32 * 1024 * 1024;

export class Writer {
  readonly #store: Store;
  readonly #onApplied: (sequence: number) => void;
  readonly #waitingMax: number;
  readonly #observer: DatabaseObserver;
  readonly #requireIntact: () => void;
  readonly #whenRoom: () => Promise<void> | undefined;
  readonly #stage: (batches: readonly VectorBatch[]) => Promise<void> | undefined;
  #sequence: number;
  #waiting: PendingWrite[] = [];
  #running: Promise<void> | undefined;
  #closedWith: Error | undefined;

  constructor(options: {
    store: Store;
    /** The last sequence in use. */
    sequence: number;
    /** Called when a commit has been applied, with the last sequence that is now visible. */
    onApplied: (sequence: number) => void;
    /** Writes that may wait. Nothing else bounds writes without a body, such as deletes. */
    waitingMax: number;
    observer: DatabaseObserver;
    /** Throws when the rows that a write was prepared from are damaged, so that it is not committed. */
    requireIntact: () => void;
    /** What a commit waits for; undefined for nothing. */
    whenRoom: () => Promise<void> | undefined;
    /**
     * Prepares memory for rows that will be applied in this order, off the main thread; undefined when there
     * is nothing to do. Never rejects.
     */
    stage: (batches: readonly VectorBatch[]) => Promise<void> | undefined;
  }) {
    this.#store = options.store;
    this.#sequence = options.sequence;
    this.#onApplied = options.onApplied;
    this.#waitingMax = options.waitingMax;
    this.#observer = options.observer;
    this.#requireIntact = options.requireIntact;
    this.#whenRoom = options.whenRoom;
    this.#stage = options.stage;
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

  #admissionError(): Error | undefined {
    if (this.#closedWith !== undefined) return this.#closedWith;
    if (this.#waiting.length < this.#waitingMax) return undefined;
    return overloadedError(`Too many writes are waiting (limit ${this.#waitingMax}).`);
  }

  /** Finishes what was submitted; later submissions reject with `reason`. */
  async close(reason: Error): Promise<void> {
    this.#closedWith ??= reason;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Writes that arrived in this iteration of the event loop share the first commit.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#commitNext();
    // Without an await after the last look at the queue: a later write starts a new run.
    this.#running = undefined;
  }

  async #commitNext(): Promise<void> {
    for (let room = this.#whenRoom(); room !== undefined; room = this.#whenRoom()) await room;
    const pending: PendingIds = new Map();
    const accepted: { pendingWrite: PendingWrite; prepared: PreparedWrite<unknown> }[] = [];
    const refused: { pendingWrite: PendingWrite; error: unknown }[] = [];
    const operations: StoreOperation[] = [];
    let sequence = this.#sequence;
    let byteCount = 0;
    while (this.#waiting.length > 0 && byteCount < COMMIT_BYTES_MAX) {
      const next = this.#waiting[0]!;
      if (accepted.length > 0 && !next.write.mayFollow(pending)) break;
      this.#waiting.shift();
      try {
        const preparing = next.write.prepare(sequence + 1, pending);
        const prepared = preparing instanceof Promise ? await preparing : preparing;
        if (prepared.takesSequence) sequence++;
        accepted.push({ pendingWrite: next, prepared });
        for (const operation of prepared.operations) {
          operations.push(operation);
          if (operation.kind === 'append') byteCount += operation.record.byteLength;
        }
      } catch (error) {
        next.write.failed?.(error);
        // It may be refused because of accepted writes, which nobody may know of before they are on disk.
        if (accepted.length > 0) refused.push({ pendingWrite: next, error });
        else next.reject(error);
        continue;
      }
      if (next.write.endsCommit) break;
    }
    const batches = accepted.flatMap(({ prepared }) => prepared.batch ?? []);
    const staging = this.#stage(batches);
    const startedAtMs = performance.now();
    try {
      this.#requireIntact();
      if (operations.length > 0) await this.#store.commit(operations);
    } catch (error) {
      // The caller may use the memory of its batch again when the write has failed.
      await staging;
      this.#observer.commitFailed();
      for (const { pendingWrite } of accepted) fail(pendingWrite, error);
      // Without the writes before them they may not have been refused.
      for (const { pendingWrite } of refused) pendingWrite.reject(error);
      return;
    }
    const commitMs = performance.now() - startedAtMs;
    await staging;
    // Again, if a checkpoint has sealed the segment meanwhile: then rows go to the next one.
    if (staging !== undefined) await this.#stage(batches);
    if (operations.length > 0) this.#observer.writesCommitted(accepted.length, commitMs);
    for (const { prepared } of accepted) prepared.apply();
    this.#sequence = sequence;
    this.#onApplied(sequence);
    for (const { pendingWrite, prepared } of accepted) {
      const { submittedAtMs, onCommitted, resolve } = pendingWrite;
      onCommitted?.({ submittedAtMs, waitMs: startedAtMs - submittedAtMs, commitMs });
      resolve(prepared.result);
    }
    for (const { pendingWrite, error } of refused) pendingWrite.reject(error);
  }
}

function fail({ write, reject }: PendingWrite, error: unknown): void {
  write.failed?.(error);
  reject(error);
}
