// The searches that find one page of groups. The first search takes more matches than the groups need;
// each further one continues behind it among the rows that can still change the groups, and fills at
// least one group. Groups of earlier pages are found again, so that a cursor needs only their number.

import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { WorkerPool } from '../../platform/pool.js';
import { narrowToWanted, valuesOfRow } from './group-rows.js';
import { GroupStage } from './group-stage.js';
import type { PageHit, PageSteps } from './page-search.js';
import { planSearch, readHits } from './planned-search.js';
import type { GroupedPlan } from './query-plan.js';
import { type Hit, type SearchTarget, searchTarget } from './search-target.js';

/** A search for a few more matches costs the same. */
const SEARCH_MATCHES_MIN = 32;
/** A search for 300 matches takes 1.4 times as long as one for 10; a second search costs more. */
const UNEVENNESS = 3;

export class GroupedSearch implements PageSteps {
  readonly #plan: GroupedPlan;
  readonly #pool: WorkerPool;
  readonly #topKMax: number;
  readonly #signal: AbortSignal | undefined;
  readonly #stage: GroupStage<Hit>;
  /** Only the rows that can still change the groups. */
  #target: SearchTarget;
  #after: Position | null = null;
  #searchCount = 0;
  /** Hits that the last search asked for. */
  #requestedCount = 0;
  #isExhausted = false;
  scannedCount = 0;
  rescoredCount = 0;

  constructor(
    plan: GroupedPlan,
    target: SearchTarget,
    options: {
      readonly pool: WorkerPool;
      readonly topKMax: number;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    this.#plan = plan;
    this.#pool = options.pool;
    this.#topKMax = options.topKMax;
    this.#signal = options.signal;
    this.#target = target;
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

  async next(): Promise<SearchQuery | null> {
    if (this.#stage.isComplete || this.#isExhausted) return null;
    if (this.#searchCount > 0) this.#target = await this.#narrowedTarget();
    if (this.#target.segmentViews.length === 0) return null;
    this.#requestedCount = this.#nextCount();
    this.#searchCount++;
    return planSearch(this.#plan, this.#target, {
      count: this.#requestedCount,
      after: this.#after,
    });
  }

  accept(found: SearchHits): void {
    this.scannedCount += found.scannedCount;
    this.rescoredCount += found.rescoredCount;
    const count = this.#requestedCount;
    const hits = readHits(this.#plan, this.#target, { found, count });
    for (const hit of hits) {
      if (this.#stage.isComplete) return;
      this.#stage.accept(hit, valuesOfRow(hit.view, hit.row, this.#plan.grouping.path));
    }
    this.#isExhausted = hits.length < this.#requestedCount;
    const last = hits.at(-1);
    if (last !== undefined) {
      this.#after = { score: last.score, id: last.view.segment.idBytes(last.row) };
    }
  }

  get hits(): readonly PageHit[] {
    return this.#stage
      .groups()
      .flatMap(({ value, matches }) => matches.map((hit) => ({ ...hit, group: value })));
  }

  get count(): number {
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
    const factor =
      this.#searchCount === 0 ? this.#plan.grouping.size : 2 ** (this.#searchCount - 1);
    const count = Math.max(SEARCH_MATCHES_MIN, UNEVENNESS * remainingCount * factor);
    return Math.min(this.#topKMax, count);
  }

  async #narrowedTarget(): Promise<SearchTarget> {
    const { segmentViews } = this.#target;
    const { path } = this.#plan.grouping;
    const { wanted } = this.#stage;
    return searchTarget(await narrowToWanted(this.#pool, segmentViews, path, wanted, this.#signal));
  }
}
