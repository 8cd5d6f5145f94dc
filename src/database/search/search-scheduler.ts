// Admits searches to the engine by continuous batching: searches that arrive while the engine works on a
// batch form the next batch. There is no timer, so an idle engine starts at once and a busy one gets full
// batches. The queue is bounded and served in order of arrival; at most two large groups are admitted at a
// time, so that a small search waits for one or two of them and not for all.

import { assert, overloadedError } from '../../common/errors.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { Engine, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { DatabaseObserver } from '../api/observer.js';

export interface SearchSchedulerOptions {
  readonly engine: Pick<Engine, 'search'>;
  /** The number of searches that may wait; a longer queue only adds latency. */
  readonly waitingMax: number;
  /** A search with more queries than this, or with many hits, is a batch of its own. */
  readonly batchQueriesMax?: number;
  readonly observer: Pick<DatabaseObserver, 'observe'>;
}

export interface ScheduledHits {
  /** One result per query, in order. */
  readonly hits: readonly SearchHits[];
  /** Time from the call until the engine started. */
  readonly waitMs: number;
}

/** Several times the size that saturates the arithmetic units; larger batches only add latency. */
const BATCH_QUERIES_MAX = 1_024;

/** Bounds the hits of all queries of a batch: selecting and holding many hits takes longer than scoring. */
const BATCH_HITS_MAX = 65_536;

/** Searches with fewer queries and hits delay others only briefly. */
const LARGE_GROUP_QUERIES_MIN = 32;
const LARGE_GROUP_HITS_MIN = 16_384;

/** One in the engine, and one ready to follow it. */
const LARGE_GROUPS_MAX = 2;

interface PendingSearch {
  readonly queries: readonly SearchQuery[];
  /** The sum of `k` over the queries. */
  readonly hitCount: number;
  readonly submittedAtMs: number;
  /** Null while the search waits. */
  batch: Batch | null;
  /** Whether the search was answered, failed or was cancelled. */
  isSettled: boolean;
  readonly resolve: (found: ScheduledHits) => void;
  readonly reject: (reason: unknown) => void;
  /** Stops listening for the abort of the signal. */
  ignoreAbort: () => void;
}

interface Batch {
  readonly searches: readonly PendingSearch[];
  readonly startedAtMs: number;
}

export class SearchScheduler {
  readonly #engine: Pick<Engine, 'search'>;
  readonly #waitingMax: number;
  readonly #batchQueriesMax: number;
  readonly #observer: Pick<DatabaseObserver, 'observe'>;
  /** In order of arrival, which is the order of service. */
  readonly #waiting = new Set<PendingSearch>();
  /** Large groups that are not yet admitted to the queue, in order of arrival. */
  readonly #heldBack = new Set<PendingSearch>();
  /** Large groups in the queue or in the engine. */
  #largeGroupCount = 0;
  #isRunning = false;
  /** Whether the last batch was a single search, behind which nothing waited. */
  #wasAlone = true;
  /** Aborts when every search of a batch has been cancelled; the next batch then gets a new controller. */
  #controller = new AbortController();

  constructor(options: SearchSchedulerOptions) {
    this.#engine = options.engine;
    this.#waitingMax = options.waitingMax;
    this.#batchQueriesMax = options.batchQueriesMax ?? BATCH_QUERIES_MAX;
    this.#observer = options.observer;
  }

  /** Searches in the queue, for metrics. */
  get waitingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Searches for all queries in one batch. Rejects with `overloaded` when the queue is full, with the
   * signal's reason when it aborts, and with what the engine rejects with.
   */
  search(queries: readonly SearchQuery[], signal: AbortSignal | undefined): Promise<ScheduledHits> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (queries.length === 0) {
        resolve({ hits: [], waitMs: 0 });
        return;
      }
      const search: PendingSearch = {
        queries,
        hitCount: queries.reduce((sum, { k }) => sum + k, 0),
        submittedAtMs: performance.now(),
        batch: null,
        isSettled: false,
        resolve,
        reject,
        ignoreAbort: () => {},
      };
      if (isLarge(search) && !this.#mayAdmitLargeGroup()) this.#heldBack.add(search);
      else this.#enqueue(search);
      search.ignoreAbort = whenAborted(signal, () => this.#abort(search, signal!.reason));
    });
  }

  /** Throws `overloaded`. */
  #enqueue(search: PendingSearch): void {
    if (this.#waiting.size >= this.#waitingMax) {
      throw overloadedError(`Too many queries are waiting (limit ${this.#waitingMax}).`);
    }
    this.#waiting.add(search);
    if (isLarge(search)) this.#largeGroupCount++;
    if (this.#isRunning) return;
    this.#isRunning = true;
    // All searches that arrive in this iteration of the event loop share the first batch, including requests
    // that arrived while this thread took part in a search. A large group fills a batch alone.
    const start = isLarge(search) ? queueMicrotask : setImmediate;
    start(() => this.#runBatches());
  }

  /** No group overtakes one that is held back. */
  #mayAdmitLargeGroup(): boolean {
    return this.#largeGroupCount < LARGE_GROUPS_MAX && this.#heldBack.size === 0;
  }

  /** Moves held-back groups into the queue while there is room. */
  #admitLargeGroups(): void {
    for (const search of this.#heldBack) {
      if (this.#largeGroupCount >= LARGE_GROUPS_MAX) return;
      this.#heldBack.delete(search);
      try {
        this.#enqueue(search);
      } catch (error) {
        this.#settle(search);
        search.reject(error);
      }
    }
  }

  async #runBatches(): Promise<void> {
    // The engine may block this thread unless more searches are likely to arrive or replies are waiting to be sent.
    let mayBlock = this.#wasAlone;
    for (;;) {
      if (this.#waiting.size === 0) this.#admitLargeGroups();
      if (this.#waiting.size === 0) break;
      const batch = this.#takeBatch();
      this.#wasAlone = batch.searches.length === 1 && this.#waiting.size === 0;
      // After the batch has been taken, so that a held-back group does not join it.
      this.#admitLargeGroups();
      await this.#runBatch(batch, mayBlock);
      mayBlock = false;
    }
    this.#isRunning = false;
  }

  /** Takes the searches that have waited longest, as many as fit. */
  #takeBatch(): Batch {
    const searches: PendingSearch[] = [];
    const batch = { searches, startedAtMs: performance.now() };
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    let queryCount = 0;
    let hitCount = 0;
    for (const search of this.#waiting) {
      queryCount += search.queries.length;
      hitCount += search.hitCount;
      const isFull = queryCount > this.#batchQueriesMax || hitCount > BATCH_HITS_MAX;
      if (isFull && searches.length > 0) break;
      searches.push(search);
      search.batch = batch;
      this.#waiting.delete(search);
    }
    return batch;
  }

  /** Never rejects: a failure belongs to the searches in the batch. */
  async #runBatch({ searches, startedAtMs }: Batch, mayBlock: boolean): Promise<void> {
    const { signal } = this.#controller;
    try {
      const queries = searches.flatMap((search) => search.queries);
      const found = await this.#engine.search(queries, { signal, mayBlock });
      assert(found.length === queries.length, 'an engine gives one result a query');
      const seconds = (performance.now() - startedAtMs) / 1000;
      this.#observer.observe('sagitta_engine_batch_queries', queries.length);
      this.#observer.observe('sagitta_engine_batch_seconds', seconds);
      let start = 0;
      for (const search of searches) {
        const end = start + search.queries.length;
        if (!search.isSettled) {
          this.#settle(search);
          const waitMs = startedAtMs - search.submittedAtMs;
          search.resolve({ hits: found.slice(start, end), waitMs });
        }
        start = end;
      }
    } catch (error) {
      for (const search of searches) {
        if (search.isSettled) continue;
        this.#settle(search);
        search.reject(error);
      }
    }
  }

  #abort(search: PendingSearch, reason: unknown): void {
    const { batch } = search;
    this.#settle(search);
    search.reject(reason);
    this.#admitLargeGroups();
    if (batch?.searches.every(({ isSettled }) => isSettled)) {
      this.#controller.abort(reason);
    }
  }

  #settle(search: PendingSearch): void {
    search.isSettled = true;
    search.ignoreAbort();
    const wasAdmitted = search.batch !== null || this.#waiting.delete(search);
    if (wasAdmitted && isLarge(search)) this.#largeGroupCount--;
    this.#heldBack.delete(search);
  }
}

function isLarge({ queries, hitCount }: PendingSearch): boolean {
  return queries.length >= LARGE_GROUP_QUERIES_MIN || hitCount >= LARGE_GROUP_HITS_MIN;
}
