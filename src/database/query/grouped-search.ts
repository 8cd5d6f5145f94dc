// Finds one page of groups. The first search takes more matches than the groups need. Each later search continues
// after the previous one among the rows that can still change the groups, and fills at least one group. Groups of
// earlier pages are found again, so that a cursor needs only their number.

import { type SegmentView, withRows } from '../collection/snapshot.js';
import type { Hit } from '../search/hits.js';
import { narrowToWanted, valuesOfRow } from './group-rows.js';
import { GroupStage } from './group-stage.js';
import { type PageHit, PageSearch, type PageServices } from './page-search.js';
import type { GroupedPlan } from './query-plan.js';

/** A search for this many matches costs no more than one for fewer. */
const SEARCH_MATCHES_MIN = 32;
/**
 * Matches to search per match needed. A search for 300 takes 1.4 times as long as one for 10; a second search costs
 * more.
 */
const UNEVENNESS = 3;

export class GroupedSearch extends PageSearch<GroupedPlan> {
  readonly #stage: GroupStage<Hit>;
  #searchCount = 0;
  #isExhausted = false;

  constructor(
    plan: GroupedPlan,
    views: readonly SegmentView[],
    services: PageServices,
    signal: AbortSignal | undefined,
  ) {
    super(plan, views, services, signal);
    const { grouping, topK } = plan;
    const { start, end } = this.rangeIn(topK);
    this.#stage = new GroupStage({ size: grouping.size, start, end, mayHaveMore: end < topK });
  }

  protected async nextCount(): Promise<number> {
    if (this.#stage.isComplete || this.#isExhausted) return 0;
    if (this.#searchCount > 0) {
      const { path } = this.plan.grouping;
      const { wanted } = this.#stage;
      const { pool } = this.services;
      this.views = withRows(await narrowToWanted(pool, this.views, path, wanted, this.signal));
    }
    return this.#searchSize();
  }

  protected take(hits: readonly Hit[], areLast: boolean): void {
    this.#searchCount++;
    for (const hit of hits) {
      if (this.#stage.isComplete) return;
      this.#stage.accept(hit, valuesOfRow(hit.view, hit.row, this.plan.grouping.path));
    }
    this.#isExhausted = areLast;
  }

  get hits(): readonly PageHit[] {
    return this.#stage
      .groups()
      .flatMap(({ value, matches }) => matches.map((hit) => ({ ...hit, group: value })));
  }

  override get count(): number {
    return this.#stage.groups().length;
  }

  get hasMore(): boolean {
    return this.#stage.hasMore;
  }

  /** At least as many matches as the groups can take, so that every search fills a group. */
  #searchSize(): number {
    const { remainingCount } = this.#stage;
    // Large groups fill unevenly, so that a larger first search is often the only one. Later searches double,
    // because one group may have far more of the best matches than it takes.
    const factor = this.#searchCount === 0 ? this.plan.grouping.size : 2 ** (this.#searchCount - 1);
    const count = Math.max(SEARCH_MATCHES_MIN, UNEVENNESS * remainingCount * factor);
    return Math.min(this.services.limits.topKMax, count);
  }
}
