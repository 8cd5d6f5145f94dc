// The searches that find one page of a query. Each search is bounded and starts after the last hit of the previous one,
// so that the thousandth page costs no more than the first. The caller carries out the searches, those of many pages
// together.

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

/** The services of the searches of a page. */
export type PageServices = Pick<ReadServices, 'pool' | 'limits'>;

/** Callers search `next()` and pass the hits to `accept()` until it returns null; then they read the page. */
export abstract class PageSearch<Plan extends QueryPlan = QueryPlan> {
  protected readonly plan: Plan;
  protected readonly services: PageServices;
  protected readonly signal: AbortSignal | undefined;
  /** The rows of the next search. */
  protected views: readonly SegmentView[];
  /** The rank key after which the next search begins; null for the first search. */
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

  /** The number of matches or groups of the page, whichever the limit counts. */
  get count(): number {
    return this.hits.length;
  }

  /** The next search; null when the page is complete. */
  next(): RowQuery | null | Promise<RowQuery | null> {
    const wantedCount = this.nextCount();
    if (typeof wantedCount === 'number') return this.#searchFor(wantedCount);
    return wantedCount.then((count) => this.#searchFor(count));
  }

  #searchFor(wantedCount: number): RowQuery | null {
    if (wantedCount === 0 || this.views.length === 0) return null;
    this.#wantedCount = wantedCount;
    const { ranking, scoreThreshold: scoreMin } = this.plan;
    const k = wantedCount + ranking.excludedIds.length;
    return { k, views: this.views, after: this.after, scoreMin };
  }

  /** Accepts the hits of the last search. */
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

  /** The number of hits to search next; 0 when the page is complete. */
  protected abstract nextCount(): number | Promise<number>;

  /** The range of the page among the `total` matches or groups. */
  protected rangeIn(total: number): { readonly start: number; readonly end: number } {
    const { returnedCount, offset, limit } = this.plan;
    const start = Math.min(returnedCount + offset, total);
    return { start, end: Math.min(start + limit, total) };
  }

  /** Takes the next hits, best first. */
  protected abstract take(hits: readonly Hit[], areLast: boolean): void;
}
