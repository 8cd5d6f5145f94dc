// Admits searches to the engine by continuous batching: searches that arrive while the engine works on a
// batch form the next batch. There is no timer, so an idle engine starts at once and a busy one gets full
// batches, several at a time if it wants. The queue is bounded and served in order of arrival; only one large group
// more than the engine takes at once is admitted, so that a small search waits for few of them and not for all.

import { CancelSignal } from '../../common/cancel-signal.js';
import { assert, overloadedError } from '../../common/errors.js';
import { whenAborted } from '../../common/when-aborted.js';
import {
  type Batching,
  DEFAULT_BATCHING,
  type Engine,
  type SearchHits,
  type SearchQuery,
} from '../../engine/core/engine.js';
import type { DatabaseObserver } from '../api/observer.js';

export interface SearchSchedulerOptions {
  readonly engine: Pick<Engine, 'search' | 'batching'>;
  /** The number of searches that may wait; a longer queue only adds latency. */
  readonly waitingMax: number;
  readonly observer: Pick<DatabaseObserver, 'observe'>;
}

export interface ScheduledHits {
  /** One result per query, in order. */
  readonly hits: readonly SearchHits[];
  /** Time from the call until the engine started. */
  readonly waitMs: number;
}

/** Searches with fewer queries and hits delay others only briefly. */
const LARGE_GROUP_QUERIES_MIN = 32;
const LARGE_GROUP_HITS_MIN = 16_384;

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
  readonly lane: Lane;
}

/** Runs one batch after another. */
interface Lane {
  /** Aborts when every search of its batch has been cancelled; the next batch then gets a new signal. */
  signal: CancelSignal;
  isRunning: boolean;
}

export class SearchScheduler {
  readonly #engine: Pick<Engine, 'search'>;
  readonly #batching: Batching;
  readonly #waitingMax: number;
  readonly #observer: Pick<DatabaseObserver, 'observe'>;
  /** In order of arrival, which is the order of service. */
  readonly #waiting = new Set<PendingSearch>();
  /** Large groups that are not yet admitted to the queue, in order of arrival. */
  readonly #heldBack = new Set<PendingSearch>();
  /** Large groups in the queue or in the engine. */
  #largeGroupCount = 0;
  /** One for each batch that may be in the engine. */
  readonly #lanes: readonly Lane[];
  #waitingQueryCount = 0;
  /** Whether the last batch was a single search, behind which nothing waited. */
  #wasAlone = true;

  constructor(options: SearchSchedulerOptions) {
    this.#engine = options.engine;
    this.#batching = options.engine.batching ?? DEFAULT_BATCHING;
    this.#waitingMax = options.waitingMax;
    this.#observer = options.observer;
    this.#lanes = Array.from({ length: this.#batching.inFlightMax }, () => ({
      signal: new CancelSignal(),
      isRunning: false,
    }));
  }

  /** How the engine wants to be fed. */
  get batching(): Batching {
    return this.#batching;
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
    this.#waitingQueryCount += search.queries.length;
    if (isLarge(search)) this.#largeGroupCount++;
    // All searches that arrive in this iteration of the event loop share the first batch, including requests
    // that arrived while this thread took part in a search. A large group fills a batch alone.
    this.#startLane(isLarge(search) ? queueMicrotask : setImmediate);
  }

  #startLane(start: (run: () => void) => void): void {
    const isIdle = this.#lanes.every(({ isRunning }) => !isRunning);
    if (!isIdle && !this.#mayRunAhead()) return;
    const lane = this.#lanes.find(({ isRunning }) => !isRunning);
    if (lane === undefined) return;
    lane.isRunning = true;
    start(() => this.#runBatches(lane));
  }

  /** Whether so many queries wait that it pays to begin another batch beside those in the engine. */
  #mayRunAhead(): boolean {
    return this.#waitingQueryCount >= this.#batching.aheadQueriesMin;
  }

  /** No group overtakes one that is held back. */
  #mayAdmitLargeGroup(): boolean {
    return this.#largeGroupCount < this.#largeGroupsMax && this.#heldBack.size === 0;
  }

  /** Those in the engine, and one ready to follow them. */
  get #largeGroupsMax(): number {
    return this.#lanes.length + 1;
  }

  /** Moves held-back groups into the queue while there is room. */
  #admitLargeGroups(): void {
    for (const search of this.#heldBack) {
      if (this.#largeGroupCount >= this.#largeGroupsMax) return;
      this.#heldBack.delete(search);
      try {
        this.#enqueue(search);
      } catch (error) {
        this.#settle(search);
        search.reject(error);
      }
    }
  }

  async #runBatches(lane: Lane): Promise<void> {
    // The engine may block this thread unless more searches are likely to arrive or replies are waiting to be sent.
    let mayBlock = this.#wasAlone;
    for (;;) {
      if (this.#waiting.size === 0) this.#admitLargeGroups();
      if (this.#waiting.size === 0) break;
      const isOnly = this.#lanes.every((other) => other === lane || !other.isRunning);
      // A few queries wait for the batch that is in the engine and then form a larger one.
      if (!isOnly && !this.#mayRunAhead()) break;
      const batch = this.#takeBatch(lane);
      this.#wasAlone = batch.searches.length === 1 && this.#waiting.size === 0;
      // After the batch has been taken, so that a held-back group does not join it.
      this.#admitLargeGroups();
      if (this.#waiting.size > 0) this.#startLane(queueMicrotask);
      await this.#runBatch(batch, mayBlock);
      mayBlock = false;
    }
    lane.isRunning = false;
  }

  /** Takes the searches that have waited longest, as many as fit. */
  #takeBatch(lane: Lane): Batch {
    const searches: PendingSearch[] = [];
    const batch = { searches, startedAtMs: performance.now(), lane };
    if (lane.signal.aborted) lane.signal = new CancelSignal();
    const { queriesMax, hitsMax } = this.#batching;
    let queryCount = 0;
    let hitCount = 0;
    for (const search of this.#waiting) {
      queryCount += search.queries.length;
      hitCount += search.hitCount;
      const isFull = queryCount > queriesMax || hitCount > hitsMax;
      if (isFull && searches.length > 0) break;
      searches.push(search);
      search.batch = batch;
      this.#stopWaiting(search);
    }
    return batch;
  }

  /** Never rejects: a failure belongs to the searches in the batch. */
  async #runBatch({ searches, startedAtMs, lane }: Batch, mayBlock: boolean): Promise<void> {
    const { signal } = lane;
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
      batch.lane.signal.abort(reason);
    }
  }

  #settle(search: PendingSearch): void {
    search.isSettled = true;
    search.ignoreAbort();
    const wasAdmitted = search.batch !== null || this.#stopWaiting(search);
    if (wasAdmitted && isLarge(search)) this.#largeGroupCount--;
    this.#heldBack.delete(search);
  }

  /** Returns whether the search waited. */
  #stopWaiting(search: PendingSearch): boolean {
    if (!this.#waiting.delete(search)) return false;
    this.#waitingQueryCount -= search.queries.length;
    return true;
  }
}

function isLarge({ queries, hitCount }: PendingSearch): boolean {
  return queries.length >= LARGE_GROUP_QUERIES_MIN || hitCount >= LARGE_GROUP_HITS_MIN;
}
