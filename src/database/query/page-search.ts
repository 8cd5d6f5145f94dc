// The searches that find one page of a query. Each is bounded and starts after the last hit of the one before, so the
// thousandth page costs what the first one costs. Searching itself is left to the caller, who sends the searches of many
// pages to the engine together.

import type { RankKey } from '../../common/rank-key.js';
import type { SearchHits } from '../../engine/core/engine.js';
import type { FacetValue } from '../api/aggregate-api.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { RowQuery } from '../rankings/ranking.js';
import { type Hit, hitsWithout } from '../search/hits.js';
import type { ReadServices } from '../search/read-services.js';
import type { QueryPlan } from './query-plan.js';

/** A match of a page, with the value of its group in a grouped query. */
export interface PageHit extends Hit {
  readonly group?: FacetValue;
}

/** The searches of a page use these. */
export type PageServices = Pick<ReadServices, 'pool' | 'limits'>;

/** Ask for `next()` and give its result to `accept()` until there is none; then read the page. */
export abstract class PageSearch<Plan extends QueryPlan = QueryPlan> {
  protected readonly plan: Plan;
  protected readonly services: PageServices;
  protected readonly signal: AbortSignal | undefined;
  /** Where the next search looks. */
  protected views: readonly SegmentView[];
  /** The row that the next search begins after; null for the first. */
  protected after: RankKey | null = null;
  #wantedCount = 0;
  scannedCount = 0;
  rescoredCount = 0;

  constructor(
    plan: Plan,
    views: readonly SegmentView[],
    services: PageServices,
    signal: AbortSignal | undefined,
  ) {
    this.plan = plan;
    this.views = views;
    this.services = services;
    this.signal = signal;
  }

  abstract readonly hits: readonly PageHit[];
  abstract readonly hasMore: boolean;

  /** The number of matches or groups of the page, whichever its limit counts. */
  get count(): number {
    return this.hits.length;
  }

  /** The next search; null when the page is found. */
  async next(): Promise<RowQuery | null> {
    const wantedCount = await this.wantMore();
    if (wantedCount === 0 || this.views.length === 0) return null;
    this.#wantedCount = wantedCount;
    const { ranking, scoreThreshold: scoreMin } = this.plan;
    const k = wantedCount + ranking.excludedIds.length;
    return { k, views: this.views, after: this.after, scoreMin };
  }

  /** The hits of the search in its views. */
  accept(found: SearchHits): void {
    this.scannedCount += found.scannedCount;
    this.rescoredCount += found.rescoredCount;
    const count = this.#wantedCount;
    const hits = hitsWithout(this.plan.ranking.excludedIds, this.views, { found, count });
    const last = hits.at(-1);
    if (last !== undefined) {
      this.after = { score: last.score, id: last.view.segment.idBytes(last.row) };
    }
    this.take(hits, hits.length < count);
  }

  /** How many hits the next search is for; 0 when the page is found. */
  protected abstract wantMore(): number | Promise<number>;

  /** Where the page begins and ends among all that the limit counts, of which there are `total`. */
  protected rangeIn(total: number): { readonly start: number; readonly end: number } {
    const { givenCount, offset, limit } = this.plan;
    const start = Math.min(givenCount + offset, total);
    return { start, end: Math.min(start + limit, total) };
  }

  /** Takes the next hits, best first. */
  protected abstract take(hits: readonly Hit[], areLast: boolean): void;
}
