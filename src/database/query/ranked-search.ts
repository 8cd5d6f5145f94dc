// Finds one page of matches, in the order of scores or sorted by keys.

import { isJsonNumber, parseExactJson } from '../../common/exact-json.js';
import { resolvePath } from '../../common/metadata-path.js';
import type { Json, JsonObject } from '../../common/types.js';
import { compareValues } from '../aggregate/merge-values.js';
import type { FacetValue } from '../api/aggregate-api.js';
import type { SortKey } from '../api/query-api.js';
import type { SegmentView } from '../collection/snapshot.js';
import type { Hit } from '../search/hits.js';
import { PageSearch, type PageServices } from './page-search.js';
import type { QueryPlan } from './query-plan.js';

export class RankedSearch extends PageSearch {
  /** Hits to find for the page; for a sorted page all hits that are sorted. */
  readonly #hitsMax: number;
  /** Whether another page may follow. */
  readonly #mayHaveMore: boolean;
  /** Hits to skip before the page. */
  #toSkip: number;
  #isDone: boolean;
  hits: readonly Hit[] = [];
  hasMore = false;

  constructor(
    plan: QueryPlan,
    views: readonly SegmentView[],
    services: PageServices,
    signal: AbortSignal | undefined,
  ) {
    super(plan, views, services, signal);
    if (plan.sort === null) {
      const remaining = (plan.topK ?? Number.POSITIVE_INFINITY) - plan.returnedCount - plan.offset;
      this.#hitsMax = Math.max(0, Math.min(plan.limit, remaining));
      this.#mayHaveMore = remaining > this.#hitsMax;
      this.after = plan.after && { score: plan.after.score, id: Buffer.from(plan.after.id) };
      this.#toSkip = plan.offset;
    } else {
      // Found and sorted again for every page, so that cursors need no state.
      this.#hitsMax = plan.topK ?? services.limits.topKDefault;
      this.#mayHaveMore = false;
      this.#toSkip = 0;
    }
    this.#isDone = this.#hitsMax === 0;
  }

  protected nextCount(): number {
    if (this.#isDone) return 0;
    // One more hit than the page needs shows whether another page follows.
    return this.#toSkip > 0
      ? Math.min(this.#toSkip, this.services.limits.topKMax)
      : this.#hitsMax + (this.#mayHaveMore ? 1 : 0);
  }

  protected take(hits: readonly Hit[], areLast: boolean): void {
    if (this.#toSkip > 0) {
      this.#toSkip -= hits.length;
      this.#isDone = areLast;
      return;
    }
    this.#isDone = true;
    const { sort } = this.plan;
    if (sort === null) {
      this.hits = hits.slice(0, this.#hitsMax);
      this.hasMore = hits.length > this.#hitsMax;
    } else {
      const { start, end } = this.rangeIn(hits.length);
      this.hits = sortHits(hits, this.plan, sort).slice(start, end);
      this.hasMore = end < hits.length;
    }
  }
}

/** Sorts stably: equal keys keep the order of scores. Rows without a comparable value come last in either direction. */
function sortHits(hits: readonly Hit[], plan: QueryPlan, sort: readonly SortKey[]): Hit[] {
  const needsMetadata = sort.some(({ field }) => field !== 'score' && !isId(field));
  const rows = hits.map((hit) => {
    const metadata = needsMetadata
      ? (parseExactJson(hit.view.segment.metadata(hit.row)) as JsonObject)
      : {};
    const values = sort.map(({ field }): Json | undefined => {
      if (field === 'score') return plan.ranking.shownScore(hit.score);
      if (isId(field)) return hit.view.segment.id(hit.row);
      return resolvePath(metadata, field);
    });
    return { hit, values };
  });
  rows.sort((a, b) => {
    for (let i = 0; i < sort.length; i++) {
      const order = compareSortValues(a.values[i], b.values[i], sort[i]!.order);
      if (order !== 0) return order;
    }
    return 0;
  });
  return rows.map(({ hit }) => hit);
}

function isId(field: string): boolean {
  return field === 'id' || field === '$id';
}

/** Numbers before strings before booleans before everything else. */
function sortRank(value: Json | undefined): number {
  if (isJsonNumber(value)) return 0;
  if (typeof value === 'string') return 1;
  if (typeof value === 'boolean') return 2;
  return 3;
}

function compareSortValues(
  a: Json | undefined,
  b: Json | undefined,
  order: 'asc' | 'desc',
): number {
  const rank = sortRank(a);
  if (rank !== sortRank(b)) return rank - sortRank(b);
  if (rank === 3) return 0;
  const ascending = compareValues(a as FacetValue, b as FacetValue);
  return order === 'asc' ? ascending : -ascending;
}
