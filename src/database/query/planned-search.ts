// Translates between a plan and its searches: what the engine is asked for, and which of the rows that it
// finds are hits. Which searches a page needs is left to the page.

import type { Position, SearchHits, SearchQuery } from '../../engine/core/engine.js';
import type { QueryPlan } from './query-plan.js';
import { searchedVector } from './ranking.js';
import { type Hit, type SearchTarget, toHits, withoutIds } from './search-target.js';

/** The search for the best `count` hits behind a position. */
export function planSearch(
  plan: QueryPlan,
  target: SearchTarget,
  { count, after }: { readonly count: number; readonly after: Position | null },
): SearchQuery {
  return {
    ...searchedVector(plan.ranking),
    k: count + plan.ranking.excludedIds.length,
    views: target.blockViews,
    after,
    scoreMin: plan.scoreThreshold,
  };
}

/** The hits of such a search, best first. */
export function readHits(
  plan: QueryPlan,
  target: SearchTarget,
  { found, count }: { readonly found: SearchHits; readonly count: number },
): readonly Hit[] {
  const excludedIds = plan.ranking.excludedIds.map((id) => Buffer.from(id));
  return withoutIds(toHits(target, found), excludedIds).slice(0, count);
}
