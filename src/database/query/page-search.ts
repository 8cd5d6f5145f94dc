// The searches that find one page of a query. Each is bounded and starts after the last hit of the
// one before, so the thousandth page costs what the first one costs. Searching itself is left to the
// caller, who sends the searches of many pages to the engine together.

import { isJsonNumber, parseExactJson } from '../../common/exact-json.js';
import { resolvePath } from '../../common/metadata-path.js';
import type { Json, JsonNumber, JsonObject } from '../../common/types.js';
import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { FacetValue } from '../aggregate/aggregate-api.js';
import { planSearch, readHits } from './planned-search.js';
import type { SortKey } from './query-api.js';
import type { QueryPlan } from './query-plan.js';
import { shownScore } from './ranking.js';
import type { Hit, SearchTarget } from './search-target.js';

export interface PageLimits {
  readonly topKMax: number;
  readonly topKDefault: number;
}

/** A match of a page, with the value of its group in a grouped query. */
export interface PageHit extends Hit {
  readonly group?: FacetValue;
}

/** Ask for `next()` and give its result to `accept()` until there is none; then read the page. */
export interface PageSteps {
  /** The next search; null when the page is found. */
  next(): SearchQuery | null | Promise<SearchQuery | null>;
  accept(found: SearchHits): void;
  readonly hits: readonly PageHit[];
  /** What the page has of what its limit counts: matches or groups. */
  readonly count: number;
  readonly hasMore: boolean;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

export class PageSearch implements PageSteps {
  readonly #plan: QueryPlan;
  readonly #target: SearchTarget;
  readonly #limits: PageLimits;
  /** Hits of the page; for a sorted page of all that are sorted. */
  readonly #hitsMax: number;
  /** Whether the walk may go on after the page. */
  readonly #mayHaveMore: boolean;
  /** Where the next search starts. */
  #after: Position | null;
  /** Hits between there and the page. */
  #toSkip: number;
  /** Hits that the search under way asks for. */
  #requestedCount = 0;
  #isDone: boolean;
  hits: readonly Hit[] = [];
  hasMore = false;
  scannedCount = 0;
  rescoredCount = 0;

  constructor(plan: QueryPlan, target: SearchTarget, limits: PageLimits) {
    this.#plan = plan;
    this.#target = target;
    this.#limits = limits;
    if (plan.sort === null) {
      const remaining = (plan.topK ?? Number.POSITIVE_INFINITY) - plan.givenCount - plan.offset;
      this.#hitsMax = Math.max(0, Math.min(plan.limit, remaining));
      this.#mayHaveMore = remaining > this.#hitsMax;
      this.#after =
        plan.after === null ? null : { score: plan.after.score, id: Buffer.from(plan.after.id) };
      this.#toSkip = plan.offset;
    } else {
      // Found and sorted anew for every page: the walk through it needs no state.
      this.#hitsMax = plan.topK ?? limits.topKDefault;
      this.#mayHaveMore = false;
      this.#after = null;
      this.#toSkip = 0;
    }
    this.#isDone = this.#hitsMax === 0 || target.segmentViews.length === 0;
  }

  next(): SearchQuery | null {
    if (this.#isDone) return null;
    // One more than the page tells whether there is a further page.
    this.#requestedCount =
      this.#toSkip > 0
        ? Math.min(this.#toSkip, this.#limits.topKMax)
        : this.#hitsMax + (this.#mayHaveMore ? 1 : 0);
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
    if (this.#toSkip > 0) {
      this.#toSkip -= hits.length;
      this.#isDone = hits.length < this.#requestedCount;
      const last = hits.at(-1);
      if (last !== undefined) {
        this.#after = { score: last.score, id: last.view.segment.idBytes(last.row) };
      }
      return;
    }
    this.#isDone = true;
    const { sort, givenCount, offset, limit } = this.#plan;
    if (sort === null) {
      this.hits = hits.slice(0, this.#hitsMax);
      this.hasMore = hits.length > this.#hitsMax;
    } else {
      const start = givenCount + offset;
      this.hits = sortHits(hits, this.#plan, sort).slice(start, start + limit);
      this.hasMore = start + this.hits.length < hits.length;
    }
  }

  get count(): number {
    return this.hits.length;
  }
}

/** Stable: equal keys keep the order of scores. Rows without a comparable value come last in either order. */
function sortHits(hits: readonly Hit[], plan: QueryPlan, sort: readonly SortKey[]): Hit[] {
  const needsMetadata = sort.some(({ field }) => field !== 'score' && !isId(field));
  const rows = hits.map((hit) => {
    const metadata = needsMetadata
      ? (parseExactJson(hit.view.segment.metadata(hit.row)) as JsonObject)
      : {};
    const values = sort.map(({ field }): Json | undefined => {
      if (field === 'score') return shownScore(plan.ranking, hit.score);
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
  const ascending =
    rank === 1
      ? Buffer.compare(Buffer.from(a as string), Buffer.from(b as string))
      : compareScalars(a as JsonNumber | boolean, b as JsonNumber | boolean);
  return order === 'asc' ? ascending : -ascending;
}

function compareScalars(a: JsonNumber | boolean, b: JsonNumber | boolean): number {
  return a < b ? -1 : Number(a > b);
}
