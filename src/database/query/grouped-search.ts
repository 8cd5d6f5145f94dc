// The searches that find one page of groups. The first search takes more matches than the groups need;
// each further one continues behind it among the rows that can still change the groups, and fills at
// least one group. Groups of earlier pages are found again, so that a cursor needs only their number.

import type { WorkerPool } from '../../platform/pool.js';
import { type SegmentView, withRows } from '../collection/snapshot.js';
import { narrowToWanted, valuesOfRow } from './group-rows.js';
import { GroupStage } from './group-stage.js';
import type { Hit } from './hits.js';
import { type PageHit, PageSearch } from './page-search.js';
import type { GroupedPlan } from './query-plan.js';

/** A search for a few more matches costs the same. */
const SEARCH_MATCHES_MIN = 32;
/** A search for 300 matches takes 1.4 times as long as one for 10; a second search costs more. */
const UNEVENNESS = 3;

export class GroupedSearch extends PageSearch<GroupedPlan> {
  readonly #pool: WorkerPool;
  readonly #topKMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #stage: GroupStage<Hit>;
  #searchCount = 0;
  #isExhausted = false;

  constructor(
    plan: GroupedPlan,
    views: readonly SegmentView[],
    options: {
      readonly pool: WorkerPool;
      readonly topKMax: number;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    super(plan, views);
    this.#pool = options.pool;
    this.#topKMax = options.topKMax;
    this.#signal = options.signal;
    const { topK, limit } = plan;
    const skippedCount = Math.min(plan.givenCount + plan.offset, topK);
    const endCount = Math.min(skippedCount + limit, topK);
    this.#stage = new GroupStage({
      size: plan.grouping.size,
      skippedCount,
      endCount,
      mayHaveMore: endCount < topK,
    });
  }

  protected async wantMore(): Promise<number> {
    if (this.#stage.isComplete || this.#isExhausted) return 0;
    if (this.#searchCount > 0) {
      const { path } = this.plan.grouping;
      const { wanted } = this.#stage;
      // Only the rows that can still change the groups.
      const views = await narrowToWanted(this.#pool, this.views, path, wanted, this.#signal);
      this.views = withRows(views);
    }
    return this.#nextCount();
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

  /** At least as many as the groups can take, so that every search fills a group. */
  #nextCount(): number {
    const { remainingCount } = this.#stage;
    // Groups fill unevenly, the more so the larger they are; a larger first search is often the only one.
    // Later ones double: a group may have far more of the best matches than it takes.
    const factor = this.#searchCount === 0 ? this.plan.grouping.size : 2 ** (this.#searchCount - 1);
    const count = Math.max(SEARCH_MATCHES_MIN, UNEVENNESS * remainingCount * factor);
    return Math.min(this.#topKMax, count);
  }
}
