// The searches of a join: groups of rows that go to the engine together, and more searches for rows whose number of
// matches is not limited. Bounded in the hits that are held and in the time that other queries wait.

import { setTimeout as wait } from 'node:timers/promises';
import { SagittaError } from '../../common/errors.js';
import type { RankKey } from '../../common/rank-key.js';
import type { Metric } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { Collection } from '../collection/collection.js';
import {
  countVisible,
  type FieldView,
  rowsOf,
  type SegmentView,
  type ViewRow,
} from '../collection/snapshot.js';
import { type EngineSearch, type SharedRows, searchByEngine } from '../search/scattered-search.js';
import type { ScheduledHits } from '../search/search-scheduler.js';
import type { BulkServices } from './bulk-services.js';

export interface SearchPlan {
  /** The rows to join, with their vectors. */
  readonly views: readonly FieldView[];
  /** The rows to search. */
  readonly searched: readonly FieldView[];
  /** The rows to search in the form in which other nodes find them; null for a sample. */
  readonly shared: SharedRows | null;
  readonly metric: Metric;
  /** Null for all matches that reach the threshold. */
  readonly topK: number | null;
  readonly scoreMin: number | null;
  readonly excludesSelf: boolean;
  /** Whether rows may be zero vectors under cosine, for which no score is defined. */
  readonly mayLackDirection: boolean;
}

/** Hits that may be held for rows that the reader has not reached, which take 16 MB. */
const HITS_HELD_MAX = 2 ** 20;
const HIT_BYTES = 16;
/** Groups held at once: one being read and one being searched. */
const GROUPS_HELD = 2;

/**
 * Hits per row in the first search when all matches are wanted; with a sensible threshold most rows have fewer. Each
 * later search of a row asks for more, since it scans all rows again.
 */
const THRESHOLD_PAGE_FIRST = 256;
const THRESHOLD_PAGE_GROWTH = 4;
const THRESHOLD_PAGE_MAX = 8_192;

/**
 * Rows per group. With enough rows the engine is bound by arithmetic instead of memory; more rows delay other queries,
 * which run between two groups.
 */
const GROUP_ROWS_MIN = 32;
const GROUP_ROWS_FIRST = 256;
const GROUP_ROWS_MAX = 1_024;
/** Bounds of the time that a group should take in the engine. */
const GROUP_MS_MIN = 50;
const GROUP_MS_MAX = 200;

/** Delay before a group is submitted again if the queue is full. */
const RETRY_MS = 50;

/** A row with its vector. */
export type JoinRow = ViewRow<FieldView>;

/** Rows that were searched together. */
interface SearchedGroup {
  readonly rows: readonly JoinRow[];
  /** The hits of each row that the reader has not taken. */
  readonly found: SearchHits[][];
  /** The rank key after which the next search of each row starts; null for a complete row. */
  readonly after: (RankKey | null)[];
  /** Continues the search of the row at this index and of later incomplete rows. */
  searchMore(from: number): Promise<void>;
}

interface Group extends SearchedGroup {
  /** Hits per row in the last search. */
  k: number;
  /** The first search; null if no row is searched. */
  readonly searching: Promise<ScheduledHits> | null;
  /** Indexes of the searched rows, without zero vectors under cosine, which have no score. */
  readonly rowIndexes: readonly number[];
  readonly submittedAtMs: number;
}

/**
 * The rows of the plan, in order, with the hits of their searches. While the reader processes one group, the next group
 * is searched. Rejects with the signal's reason.
 */
export async function* searchGroups(
  plan: SearchPlan,
  searched: Collection,
  services: BulkServices,
  signal: AbortSignal | undefined,
): AsyncGenerator<SearchedGroup> {
  const controller = new AbortController();
  const ignoreAbort = whenAborted(signal, () => controller.abort(signal?.reason));
  const stats = services.scanStats.startJoin(countVisible(plan.views));
  const searches = new JoinSearches(plan, services, controller.signal);
  const remaining = rowsOf(plan.views);
  let next: Group | null = null;
  try {
    signal?.throwIfAborted();
    next = searches.begin(remaining);
    while (next !== null) {
      const group: Group = next;
      next = searches.begin(remaining);
      await searches.first(group);
      yield group;
      stats.joined(group.rows.length);
    }
  } finally {
    ignoreAbort();
    controller.abort();
    await next?.searching?.catch(() => {});
    stats.ended();
    unloadGone(plan.searched, searched, services);
  }
}

/** Unloads segments that a long search loaded again after the collection had removed them. */
function unloadGone(
  views: readonly SegmentView[],
  collection: Collection,
  { collections, unloadSegment }: BulkServices,
): void {
  const current = new Set(collections.isServing(collection) ? collection.rows.segments : []);
  for (const { segment } of views) if (!current.has(segment)) unloadSegment(segment);
}

class JoinSearches {
  readonly #plan: SearchPlan;
  readonly #services: BulkServices;
  readonly #signal: AbortSignal;
  /** Hits per row in the first search. */
  readonly #k: number;
  #groupRows: number;
  #hasBegun = false;

  constructor(plan: SearchPlan, services: BulkServices, signal: AbortSignal) {
    this.#plan = plan;
    this.#services = services;
    this.#signal = signal;
    // The row itself may be among the hits.
    this.#k = plan.topK === null ? THRESHOLD_PAGE_FIRST : plan.topK + (plan.excludesSelf ? 1 : 0);
    this.#groupRows = this.#boundGroup(GROUP_ROWS_FIRST);
  }

  /** Submits the first search of the next rows; null if no row is left. */
  begin(remainingRows: Iterator<JoinRow>): Group | null {
    const rows = takeRows(remainingRows, this.#groupRows);
    if (rows.length === 0) return null;
    const rowIndexes: number[] = [];
    if (this.#plan.searched.length > 0) {
      for (let i = 0; i < rows.length; i++) if (this.#hasDirection(rows[i]!)) rowIndexes.push(i);
    }
    const queries = rowIndexes.map((index) => this.#queryOf(rows[index]!, null, this.#k));
    const searching = queries.length === 0 ? null : this.#submit(queries);
    // `first` reports a failure; until it is called, nothing else handles the rejection.
    searching?.catch(() => {});
    const group: Group = {
      rows,
      found: rows.map(() => []),
      after: rows.map(() => null),
      k: this.#k,
      searching,
      rowIndexes,
      submittedAtMs: performance.now(),
      searchMore: (from) => this.#searchMore(group, from),
    };
    return group;
  }

  /** Waits for the search that `begin` submitted. */
  async first(group: Group): Promise<void> {
    if (group.searching === null) return;
    const { hits, waitMs } = await group.searching;
    for (const [i, index] of group.rowIndexes.entries()) this.#addHits(group, index, hits[i]!);
    const searchMs = performance.now() - group.submittedAtMs - waitMs;
    if (group.rows.length < this.#groupRows) return;
    if (searchMs > GROUP_MS_MAX) this.#groupRows = Math.max(GROUP_ROWS_MIN, this.#groupRows >>> 1);
    else if (searchMs < GROUP_MS_MIN) this.#groupRows = this.#boundGroup(this.#groupRows * 2);
  }

  async #searchMore(group: Group, from: number): Promise<void> {
    group.k = Math.min(group.k * THRESHOLD_PAGE_GROWTH, THRESHOLD_PAGE_MAX);
    const rowIndexes: number[] = [];
    let heldCount = 0;
    for (let i = from; i < group.rows.length; i++) {
      for (const { rows } of group.found[i]!) heldCount += rows.length;
    }
    for (let i = from; i < group.rows.length; i++) {
      if (group.after[i] === null) continue;
      heldCount += group.k;
      if (heldCount > HITS_HELD_MAX && rowIndexes.length > 0) break;
      rowIndexes.push(i);
    }
    const queries = rowIndexes.map((index) =>
      this.#queryOf(group.rows[index]!, group.after[index]!, group.k),
    );
    const { hits } = await this.#submit(queries);
    for (const [i, index] of rowIndexes.entries()) this.#addHits(group, index, hits[i]!);
  }

  /** Waits if the queue is full, except for the first group: a reply that has begun cannot be refused any more. */
  async #submit(queries: readonly EngineSearch['query'][]): Promise<ScheduledHits> {
    const mayFail = !this.#hasBegun;
    this.#hasBegun = true;
    const searches = queries.map((query) => ({ query, rows: this.#plan.shared }));
    for (;;) {
      try {
        return await searchByEngine(searches, this.#services, this.#signal);
      } catch (error) {
        const isOverloaded = error instanceof SagittaError && error.code === 'overloaded';
        if (mayFail || !isOverloaded) throw error;
        // An abort is reported by the next attempt.
        await wait(RETRY_MS, undefined, { signal: this.#signal }).catch(() => {});
      }
    }
  }

  #addHits(group: Group, index: number, hits: SearchHits): void {
    const { searched, topK } = this.#plan;
    const count = hits.rows.length;
    group.found[index]!.push(hits);
    if (topK !== null || count < group.k) {
      group.after[index] = null;
      return;
    }
    const { segment } = searched[hits.viewIndexes[count - 1]!]!;
    group.after[index] = {
      score: hits.scores[count - 1]!,
      id: segment.idBytes(hits.rows[count - 1]!),
    };
  }

  #queryOf(row: JoinRow, after: RankKey | null, k: number): EngineSearch['query'] {
    const { searched: views, metric, scoreMin } = this.#plan;
    const vector = this.#valuesOf(row);
    return { vector, metric, k, views, after, scoreMin };
  }

  #hasDirection(row: JoinRow): boolean {
    return !this.#plan.mayLackDirection || this.#valuesOf(row).some((value) => value !== 0);
  }

  #valuesOf({ view: { block }, row }: JoinRow): Float32Array {
    const { dimension, values } = block;
    // Copied, because values of a mapped file must not be read after the check for damage.
    return values.slice(row * dimension, (row + 1) * dimension);
  }

  #boundGroup(rowCount: number): number {
    const heldMax = Math.max(1, Math.floor(HITS_HELD_MAX / this.#k));
    return Math.min(rowCount, GROUP_ROWS_MAX, heldMax);
  }
}

/** The maximum memory of the hits of a join of `rowCount` rows. */
export function heldBytesMax({ topK }: SearchPlan, rowCount: number): number {
  const hitCount = Math.min(HITS_HELD_MAX, rowCount * ((topK ?? THRESHOLD_PAGE_MAX) + 1));
  return GROUPS_HELD * HIT_BYTES * hitCount;
}

/** The next `countMax` rows, or fewer at the end. */
export function takeRows(remaining: Iterator<JoinRow>, countMax: number): JoinRow[] {
  const rows: JoinRow[] = [];
  while (rows.length < countMax) {
    const next = remaining.next();
    if (next.done === true) break;
    rows.push(next.value);
  }
  return rows;
}
