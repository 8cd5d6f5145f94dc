// The searches of a join: which rows go to the engine together, and on for whom all matches are
// wanted, however many. Bounded in what is held, and in how long others wait.

import { setTimeout as wait } from 'node:timers/promises';
import { nextSetBit } from '../../common/bitmap.js';
import { SagittaError } from '../../common/errors.js';
import type { Metric } from '../../common/types.js';
import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { ScheduledHits, SearchScheduler } from '../query/search-scheduler.js';
import type { SearchTarget } from '../query/search-target.js';

export interface JoinPlan {
  readonly views: readonly SegmentView[];
  readonly target: SearchTarget;
  readonly metric: Metric;
  /** Null for all that reach the threshold. */
  readonly topK: number | null;
  readonly scoreMin: number | null;
  readonly excludesSelf: boolean;
  readonly includeMetadata: boolean;
  readonly mayLackDirection: boolean;
}

/** Hits that may be held for rows whose turn has not come: 16 MB of them. */
const HITS_HELD_MAX = 2 ** 20;

/**
 * Matches of one row in one search where all are wanted: most rows of a sensible threshold have fewer.
 * Each further search of a row asks for more, since it reads all rows again.
 */
const THRESHOLD_PAGE_FIRST = 256;
const THRESHOLD_PAGE_GROWTH = 4;
const THRESHOLD_PAGE_MAX = 8_192;

/**
 * Rows in one group. Enough of them make the engine's work arithmetic and not the reading of rows;
 * more make others wait, whose queries come between two groups.
 */
const GROUP_ROWS_MIN = 32;
const GROUP_ROWS_FIRST = 256;
const GROUP_ROWS_MAX = 1_024;
/** A group shall take the engine about so long. */
const GROUP_MS_MIN = 50;
const GROUP_MS_MAX = 200;

/** After which a group is offered again to an engine whose queue is full. */
const RETRY_MS = 50;

export interface JoinRow {
  readonly view: SegmentView;
  readonly row: number;
}

/** Rows that are searched for together. */
export interface Group {
  readonly rows: readonly JoinRow[];
  /** What has been found for each row and was not taken yet. */
  readonly found: SearchHits[][];
  /** Where each row's search goes on; null where all has been found. */
  readonly after: (Position | null)[];
  /** Hits of one row in the search that was last. */
  k: number;
  /** Null where there is nothing to search. */
  readonly searching: Promise<ScheduledHits> | null;
  /** Which rows it is about: all that have a direction. */
  readonly places: readonly number[];
  readonly begunAtMs: number;
}

export class JoinSearches {
  readonly #plan: JoinPlan;
  readonly #scheduler: SearchScheduler;
  readonly #signal: AbortSignal;
  /** Hits of one row in its first search. */
  readonly #k: number;
  #groupRows: number;
  #hasBegun = false;

  constructor(plan: JoinPlan, scheduler: SearchScheduler, signal: AbortSignal) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#signal = signal;
    // The row itself may be among them.
    this.#k = plan.topK === null ? THRESHOLD_PAGE_FIRST : plan.topK + (plan.excludesSelf ? 1 : 0);
    this.#groupRows = this.#atMost(GROUP_ROWS_FIRST);
  }

  /** The next rows, on their way to the engine; null when there are none. */
  begin(walk: Iterator<JoinRow>): Group | null {
    const rows: JoinRow[] = [];
    while (rows.length < this.#groupRows) {
      const next = walk.next();
      if (next.done === true) break;
      rows.push(next.value);
    }
    if (rows.length === 0) return null;
    const places: number[] = [];
    if (this.#plan.target.segmentViews.length > 0) {
      for (let i = 0; i < rows.length; i++) if (this.#hasDirection(rows[i]!)) places.push(i);
    }
    const queries = places.map((place) => this.#queryOf(rows[place]!, null, this.#k));
    const searching = queries.length === 0 ? null : this.#submit(queries);
    // Whoever waits for it learns of a failure; until then nobody does.
    searching?.catch(() => {});
    return {
      rows,
      found: rows.map(() => []),
      after: rows.map(() => null),
      k: this.#k,
      searching,
      places,
      begunAtMs: performance.now(),
    };
  }

  /** Waits for what `begin` has begun. */
  async first(group: Group): Promise<void> {
    if (group.searching === null) return;
    const { hits, waitMs } = await group.searching;
    for (const [i, place] of group.places.entries()) this.#note(group, place, hits[i]!);
    const searchMs = performance.now() - group.begunAtMs - waitMs;
    if (group.rows.length < this.#groupRows) return;
    if (searchMs > GROUP_MS_MAX) this.#groupRows = Math.max(GROUP_ROWS_MIN, this.#groupRows >>> 1);
    else if (searchMs < GROUP_MS_MIN) this.#groupRows = this.#atMost(this.#groupRows * 2);
  }

  /** Goes on for the row, and for those after it that are not at their end either. */
  async further(group: Group, from: number): Promise<void> {
    group.k = Math.min(group.k * THRESHOLD_PAGE_GROWTH, THRESHOLD_PAGE_MAX);
    const places: number[] = [];
    let heldCount = 0;
    for (let i = from; i < group.rows.length; i++) {
      for (const { rows } of group.found[i]!) heldCount += rows.length;
    }
    for (let i = from; i < group.rows.length; i++) {
      if (group.after[i] === null) continue;
      heldCount += group.k;
      if (heldCount > HITS_HELD_MAX && places.length > 0) break;
      places.push(i);
    }
    const queries = places.map((place) =>
      this.#queryOf(group.rows[place]!, group.after[place]!, group.k),
    );
    const { hits } = await this.#submit(queries);
    for (const [i, place] of places.entries()) this.#note(group, place, hits[i]!);
  }

  /** A join that has begun waits where a query would be refused: its reply cannot be taken back. */
  async #submit(queries: readonly SearchQuery[]): Promise<ScheduledHits> {
    const mayBeRefused = !this.#hasBegun;
    this.#hasBegun = true;
    for (;;) {
      try {
        return await this.#scheduler.search(queries, this.#signal);
      } catch (error) {
        const isOverloaded = error instanceof SagittaError && error.code === 'overloaded';
        if (mayBeRefused || !isOverloaded) throw error;
        // When it is aborted meanwhile, the next attempt says so.
        await wait(RETRY_MS, undefined, { signal: this.#signal }).catch(() => {});
      }
    }
  }

  #note(group: Group, place: number, hits: SearchHits): void {
    const { target, topK } = this.#plan;
    const count = hits.rows.length;
    group.found[place]!.push(hits);
    if (topK !== null || count < group.k) {
      group.after[place] = null;
      return;
    }
    const { segment } = target.segmentViews[hits.viewIndexes[count - 1]!]!;
    group.after[place] = {
      score: hits.scores[count - 1]!,
      id: segment.idBytes(hits.rows[count - 1]!),
    };
  }

  #queryOf({ view: part, row }: JoinRow, after: Position | null, k: number): SearchQuery {
    const { target, metric, scoreMin } = this.#plan;
    const vector = valuesOf(part, row);
    return { vector, metric, k, views: target.blockViews, after, scoreMin };
  }

  #hasDirection({ view: part, row }: JoinRow): boolean {
    return !this.#plan.mayLackDirection || valuesOf(part, row).some((value) => value !== 0);
  }

  #atMost(rowCount: number): number {
    const heldMax = Math.max(1, Math.floor(HITS_HELD_MAX / this.#k));
    return Math.min(rowCount, GROUP_ROWS_MAX, heldMax);
  }
}

function valuesOf({ block: { values, dimension } }: SegmentView, row: number): Float32Array {
  return values.subarray(row * dimension, (row + 1) * dimension);
}

/** In order of arrival. */
export function* walkRows(parts: readonly SegmentView[]): Generator<JoinRow> {
  for (const part of parts) {
    const { rows, rowCount } = part;
    let row = rows === null ? 0 : nextSetBit(rows, 0);
    while (row >= 0 && row < rowCount) {
      yield { view: part, row };
      row = rows === null ? row + 1 : nextSetBit(rows, row + 1);
    }
  }
}
