// Answers one query, or many together: plans, takes a snapshot, filters, searches, cuts the page and seals the cursor
// of the next page.

import { distanceOf } from '../../engine/core/engine.js';
import { filterTests } from '../../filter/filter-node.js';
import { aggregateViews, viewsOfFacets } from '../aggregate/aggregate.js';
import { finite } from '../aggregate/row-set.js';
import type { Aggregations } from '../api/aggregate-api.js';
import type { CallOptions } from '../api/database-api.js';
import { observeCursorError, observeReplies } from '../api/observer.js';
import type {
  Explain,
  Match,
  QueryReply,
  QueryRequest,
  QueryTimings,
  QueryWork,
} from '../api/query-api.js';
import type { Warning } from '../api/warning.js';
import type { Collection } from '../collection/collection.js';
import { reachCursor, reachSequence } from '../collection/reach-sequence.js';
import { rowSizesOf } from '../collection/row-sizes.js';
import type { RowAddress } from '../collection/rows.js';
import { countVisible, isVisible, type SegmentView, withoutRow } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { findUnknownPaths } from '../collection/unknown-paths.js';
import { rankingContext } from '../rankings/kinds.js';
import { openRankings, searchRankings } from '../rankings/open-rankings.js';
import type { OpenRanking, RowQuery } from '../rankings/ranking.js';
import { toFloat32 } from '../search/hits.js';
import { DiverseSearch } from './diverse-search.js';
import { GroupedSearch } from './grouped-search.js';
import { matchBytesOf } from './match-bytes.js';
import type { PageHit, PageSearch } from './page-search.js';
import { openCursor } from './paging.js';
import { checkQuery } from './query-issues.js';
import { isDiverse, isGrouped, nextCursor, planQuery, type QueryPlan } from './query-plan.js';
import type { QueryServices } from './query-services.js';
import { RankedSearch } from './ranked-search.js';
import { findScoreStats } from './score-stats.js';

export interface QueryOptions extends CallOptions {
  /** Called before the search with an estimate of the memory of the matches; an error ends the query. */
  readonly reserve?: (byteCount: number) => void;
}

type Mutable<Value> = { -readonly [Name in keyof Value]: Value[Name] };

/** Answers one page of one query. Rejects with what `planQuery` throws and with the signal's reason. */
export async function runQuery(
  collection: Collection,
  request: QueryRequest,
  services: QueryServices,
  { signal, reserve }: QueryOptions,
): Promise<QueryReply> {
  const { collections, limits, sealer, clock, observer } = services;
  let view: SnapshotView | undefined;
  try {
    const checked = checkQuery(request, limits);
    const { cursor: token, minSequence } = checked;
    const cursor = token === undefined ? null : openCursor(token, 'query', collection, sealer);
    if (cursor !== null) await reachCursor(cursor, collection, signal);
    else if (minSequence !== undefined) await reachSequence(collection, minSequence, signal);
    view = new SnapshotView(collection, collections);
    const context = { ...rankingContext(view, limits), now: clock.now() };
    const plan = planQuery(checked, cursor, context);
    view.pin(plan.sequence);
    reserve?.(matchBytesOf(plan, rowSizesOf(collection)));
    const replies = await answerPlans(view, [plan], services, signal);
    observeReplies(observer, [request], replies);
    return replies[0]!;
  } catch (error) {
    observeCursorError(observer, request.cursor, error);
    throw error;
  } finally {
    view?.close();
  }
}

/** One reply per plan, in order. The plans are searched together and report the same timings. */
export async function answerPlans(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  services: QueryServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryReply[]> {
  const { sealer, engine } = services;
  const startedAtMs = performance.now();
  // Found before the first await, because compactions may move rows later; snapshots do not change.
  const excluded = plans.map(({ ranking, isCounted }) =>
    isCounted ? ranking.excludedIds.flatMap((id) => view.find(id) ?? []) : [],
  );
  const opened = await openRankings(view, plans.map(rankedSnapshot), services, signal);
  const filteredAtMs = performance.now();
  signal?.throwIfAborted();
  const pages = plans.map((plan, i): PageSearch => {
    const { views } = opened[i]!;
    if (isGrouped(plan)) return new GroupedSearch(plan, views, services, signal);
    if (isDiverse(plan)) return new DiverseSearch(plan, views, services, signal);
    return new RankedSearch(plan, views, services, signal);
  });
  const [waitMs, aggregations] = await Promise.all([
    searchPages(
      pages.map((page, i) => ({ page, ranking: opened[i]! })),
      services,
      signal,
    ),
    aggregateAll(view, plans, { opened, excluded }, services, signal),
  ]);
  const searchedAtMs = performance.now();
  // All replies have the same timings, the last of which is known when they have been made.
  const timings: Mutable<QueryTimings> = {
    startedAtMs,
    filterMs: filteredAtMs - startedAtMs,
    waitMs,
    searchMs: searchedAtMs - filteredAtMs - waitMs,
    assembleMs: 0,
  };
  const replies = plans.map((plan, i): Mutable<QueryReply> => {
    const page = pages[i]!;
    const { hits, hasMore, scannedCount, rescoredCount } = page;
    const { views } = opened[i]!;
    const { views: allViews } = view.snapshot(plan.sequence);
    const visibleCount = countVisible(views);
    const excludedCount = excluded[i]!.filter((address) => isVisible(address, views)).length;
    return {
      matches: hits.map((hit) => toMatch(hit, plan, view.collection)),
      valuesEncoding: plan.includeValues === 'base64' ? 'base64' : 'numbers',
      hasMore,
      nextCursor: hasMore ? sealer.seal(nextCursor(view.collection, plan, page)) : undefined,
      // Excludes the vectors that the query names by id.
      total: plan.isCounted ? visibleCount - excludedCount : undefined,
      sequence: plan.sequence,
      ...aggregations[i]!,
      warnings: plan.isCounted ? warningsOf(plan, view.collection, allViews) : undefined,
      timings,
      work: {
        conditionCount: plan.filterNode === null ? 0 : filterTests(plan.filterNode).length,
        segmentCount: allViews.length,
        rowsScanned: scannedCount,
        rowsPassedFilter: visibleCount,
        candidatesRescored: rescoredCount,
      },
    };
  });
  timings.assembleMs = performance.now() - searchedAtMs;
  for (const [i, { isExplained, ranking }] of plans.entries()) {
    const reply = replies[i]!;
    if (isExplained) reply.explain = explain(reply.work, timings, ranking.searcher(engine));
  }
  return replies;
}

/** The ranking of a plan, with its snapshot and filters. */
function rankedSnapshot(plan: QueryPlan) {
  const { sequence, ranking } = plan;
  return { sequence, ranking, filters: [plan] };
}

function warningsOf(
  { filterNode, grouping, sort, aggregation }: QueryPlan,
  collection: Collection,
  views: readonly SegmentView[],
): readonly Warning[] | undefined {
  const names = { filter: filterNode, groupBy: grouping?.path, sort, ...aggregation };
  return findUnknownPaths(collection, views, names);
}

type QueryAggregations = Aggregations & Pick<QueryReply, 'scoreStats'>;

const NO_AGGREGATIONS: QueryAggregations = {};

/** The facets and stats of each plan, over the rows that its `total` counts. */
async function aggregateAll(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  {
    opened,
    excluded,
  }: {
    readonly opened: readonly OpenRanking[];
    readonly excluded: readonly (readonly RowAddress[])[];
  },
  services: QueryServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryAggregations[]> {
  const { pool, observer, limits } = services;
  if (plans.every(({ aggregation, scoreStats }) => aggregation === null && scoreStats === null)) {
    return plans.map(() => NO_AGGREGATIONS);
  }
  return Promise.all(
    plans.map(async (plan, i): Promise<QueryAggregations> => {
      const { aggregation, scoreStats, scoreThreshold } = plan;
      if (aggregation === null && scoreStats === null) return NO_AGGREGATIONS;
      const startedAtMs = performance.now();
      const views = excluded[i]!.reduce(withoutRow, opened[i]!.views);
      // The rows of the query without the conditions on the path of a facet.
      const ownViews = await viewsOfFacets(aggregation?.facets, plan.filter, async (filter) => {
        const filterNode = filter && view.collection.parseFilter(filter, limits);
        const ranked = rankedSnapshot({ ...plan, filter, filterNode });
        const [own] = await openRankings(view, [ranked], services, signal);
        return excluded[i]!.reduce(withoutRow, own!.views);
      });
      // Statistics of scores are refused for rankings without scoring.
      const scored = { ...plan.ranking.scoring!, scoreThreshold };
      const [aggregations, foundScores] = await Promise.all([
        aggregation && aggregateViews(pool, views, aggregation, signal, ownViews),
        scoreStats && findScoreStats(pool, views, scored, scoreStats.histogram, signal),
      ]);
      observer.observe('sagitta_aggregation_seconds', (performance.now() - startedAtMs) / 1000);
      return { ...aggregations, ...(foundScores && { scoreStats: foundScores }) };
    }),
  );
}

interface SearchedPage {
  readonly page: PageSearch;
  readonly ranking: OpenRanking;
}

/**
 * Searches for all pages in common batches until every page is complete. Resolves to the
 * milliseconds spent waiting for the engine.
 */
async function searchPages(
  pages: readonly SearchedPage[],
  services: QueryServices,
  signal: AbortSignal | undefined,
): Promise<number> {
  let waitMs = 0;
  for (;;) {
    const searches: (SearchedPage & { readonly query: RowQuery })[] = [];
    const next = pages.map(({ page }) => page.next());
    const isKnown = next.every((query) => !(query instanceof Promise));
    const queries = isKnown ? (next as (RowQuery | null)[]) : await Promise.all(next);
    for (const [i, { page, ranking }] of pages.entries()) {
      const query = queries[i]!;
      if (query !== null) searches.push({ page, ranking, query });
    }
    if (searches.length === 0) return waitMs;
    const found = await searchRankings(searches, services, signal);
    waitMs += found.waitMs;
    for (const [i, { page }] of searches.entries()) page.accept(found.hits[i]!);
  }
}

function explain(work: QueryWork, timings: QueryTimings, engine: string): Explain {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  return { engine, ...work, isCertified: true, filterMs, searchMs: waitMs + searchMs, assembleMs };
}

function toMatch(hit: PageHit, plan: QueryPlan, collection: Collection): Match {
  const { row, score, group } = hit;
  const { segment } = hit.view;
  const { ranking } = plan;
  const match: Mutable<Match> = {
    id: segment.id(row),
    score: toFloat32(ranking.shownScore(score)),
  };
  if (ranking.hasDistance) match.distance = toFloat32(distanceOf(ranking.scoring!.metric, score));
  // JSON has no infinity.
  if (group !== undefined) match.group = typeof group === 'number' ? finite(group) : group;
  if (plan.includeSequence) match.sequence = segment.insertedSequence(row);
  const address = { segment, row };
  if (plan.includeMetadata !== false) {
    Object.assign(match, collection.metadataOf(address, plan.includeMetadata));
  }
  if (plan.includeValues !== false) Object.assign(match, collection.valuesOf(address));
  return match;
}
