// Nearest-neighbour queries, one or many together: plan, take a snapshot, filter, search, cut the
// page and seal the cursor of the next one.

import { assert } from '../../common/errors.js';
import { distanceOf, type SearchHits, type SearchQuery } from '../../engine/core/engine.js';
import { aggregateViews, viewsOfFacets } from '../aggregate/aggregate.js';
import type { Aggregations } from '../aggregate/aggregate-api.js';
import { finite } from '../aggregate/row-set.js';
import type { CallOptions } from '../api.js';
import type { Collection } from '../collection/collection.js';
import { rowSizesOf } from '../collection/row-sizes.js';
import type { RowAddress } from '../collection/rows.js';
import { isVisible, type SegmentView, withoutRow } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { observeCursorError, observeReplies } from '../observer.js';
import { findUnknownPaths } from '../unknown-paths.js';
import type { Warning } from '../warning.js';
import { DiverseSearch } from './diverse-search.js';
import { GroupedSearch } from './grouped-search.js';
import { matchBytesOf } from './match-bytes.js';
import { type OpenPlan, openPlans } from './open-ranking.js';
import { type PageHit, PageSearch, type PageSteps } from './page-search.js';
import { reachCursors, reachSequence } from './paging.js';
import type {
  Explain,
  Match,
  QueryReply,
  QueryRequest,
  QueryTimings,
  QueryWork,
} from './query-api.js';
import {
  createFilterParser,
  isDiverse,
  isGrouped,
  nextCursor,
  planQuery,
  type QueryPlan,
} from './query-plan.js';
import { scoringMetric, shownScore } from './ranking.js';
import { searchByEngine } from './scattered-search.js';
import { findScoreStats, type ScoredQuery } from './score-stats.js';
import type { ScheduledHits } from './search-scheduler.js';
import { toFloat32 } from './search-target.js';

export interface QueryOptions extends CallOptions {
  /** Called with the memory that the matches will take, before they are searched; a throw ends the query. */
  readonly reserve?: (byteCount: number) => void;
}

/** One page of one query. Throws what `planQuery` throws; rejects with the signal's reason. */
export async function runQuery(
  collection: Collection,
  request: QueryRequest,
  services: DatabaseServices,
  { signal, reserve }: QueryOptions,
): Promise<QueryReply> {
  const { collections, limits, sealer, clock, observer } = services;
  if (request.minSequence !== undefined && request.cursor === undefined) {
    await reachSequence(collection, request.minSequence, signal);
  }
  if (request.cursor !== undefined) {
    await reachCursors(collection, [request.cursor], sealer, signal);
  }
  const view = new SnapshotView(collection, () => collections.isServing(collection));
  try {
    const plan = planQuery(view, request, {
      limits,
      sealer,
      now: clock.now(),
      parseFilter: createFilterParser(collection, limits),
    });
    view.pin(plan.sequence);
    reserve?.(matchBytesOf(plan, rowSizesOf(collection)));
    const replies = await answerPlans(view, [plan], services, signal);
    observeReplies(observer, [request], replies);
    return replies[0]!;
  } catch (error) {
    observeCursorError(observer, request.cursor, error);
    throw error;
  } finally {
    view.close();
  }
}

/** One reply a plan, in order. They are searched together and report the same timings. */
export async function answerPlans(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryReply[]> {
  const { limits, sealer, pool } = services;
  const startedAtMs = performance.now();
  // Rows may move while filters and engine are at work; the snapshots stay what they are.
  const excluded = plans.map(({ ranking, isCounted }) =>
    isCounted ? ranking.excludedIds.flatMap((id) => view.find(id) ?? []) : [],
  );
  const opened = await openPlans(view, plans, services, signal);
  const filteredAtMs = performance.now();
  signal?.throwIfAborted();
  const pages = plans.map((plan, i): PageSteps => {
    const { target } = opened[i]!;
    if (isGrouped(plan)) {
      return new GroupedSearch(plan, target, { pool, topKMax: limits.topKMax, signal });
    }
    if (isDiverse(plan)) return new DiverseSearch(plan, target, { pool, signal });
    return new PageSearch(plan, target, limits);
  });
  const [waitMs, aggregations] = await Promise.all([
    searchPages(
      pages.map((page, i) => ({ page, plan: plans[i]!, opened: opened[i]! })),
      services,
      signal,
    ),
    aggregateAll(view, plans, { opened, excluded }, services, signal),
  ]);
  const searchedAtMs = performance.now();
  const replies = plans.map((plan, i): Omit<QueryReply, 'timings'> => {
    const page = pages[i]!;
    const { hits, hasMore, scannedCount, rescoredCount } = page;
    const { snapshot, views, visibleCount, conditionCount } = opened[i]!;
    const excludedCount = excluded[i]!.filter((address) => isVisible(address, views)).length;
    return {
      matches: hits.map((hit) => toMatch(hit, plan, view.collection)),
      valuesEncoding: plan.includeValues === 'base64' ? 'base64' : 'numbers',
      hasMore,
      nextCursor: hasMore ? sealer.seal(nextCursor(view.collection, plan, page)) : undefined,
      // Without the vectors that the query names by their ids.
      total: plan.isCounted ? visibleCount - excludedCount : undefined,
      sequence: plan.sequence,
      ...aggregations[i]!,
      warnings: plan.isCounted ? warningsOf(plan, view.collection, snapshot.views) : undefined,
      work: {
        conditionCount,
        segmentCount: snapshot.views.length,
        rowsScanned: scannedCount,
        rowsPassedFilter: visibleCount,
        candidatesRescored: rescoredCount,
      },
    };
  });
  const timings: QueryTimings = {
    startedAtMs,
    filterMs: filteredAtMs - startedAtMs,
    waitMs,
    searchMs: searchedAtMs - filteredAtMs - waitMs,
    assembleMs: performance.now() - searchedAtMs,
  };
  return replies.map((reply, i) => {
    if (!plans[i]!.isExplained) return { ...reply, timings };
    return {
      ...reply,
      timings,
      explain: explain(reply.work, timings, engineOf(plans[i]!, services)),
    };
  });
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

/** The facets and stats of each plan: of the rows that its `total` counts. */
async function aggregateAll(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  {
    opened,
    excluded,
  }: {
    readonly opened: readonly OpenPlan[];
    readonly excluded: readonly (readonly RowAddress[])[];
  },
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryAggregations[]> {
  const { pool, observer, limits } = services;
  return Promise.all(
    plans.map(async (plan, i): Promise<QueryAggregations> => {
      const { aggregation, scoreStats } = plan;
      if (aggregation === null && scoreStats === null) return {};
      const startedAtMs = performance.now();
      const views = excluded[i]!.reduce(withoutRow, opened[i]!.views);
      // What the query ranks without conditions on the path of a facet.
      const ownViews = await viewsOfFacets(aggregation?.facets, plan.filter, async (filter) => {
        const filterNode = filter && view.collection.parseFilter(filter, limits);
        const [own] = await openPlans(view, [{ ...plan, filter, filterNode }], services, signal);
        return excluded[i]!.reduce(withoutRow, own!.views);
      });
      const [aggregations, foundScores] = await Promise.all([
        aggregation && aggregateViews(pool, views, aggregation, signal, ownViews),
        scoreStats && findScoreStats(pool, views, scoredQuery(plan), scoreStats.histogram, signal),
      ]);
      observer.aggregated(performance.now() - startedAtMs);
      return { ...aggregations, ...(foundScores && { scoreStats: foundScores }) };
    }),
  );
}

interface SearchedPage {
  readonly page: PageSteps;
  readonly plan: QueryPlan;
  readonly opened: OpenPlan;
}

/** One search of a page. */
interface PageQuery extends SearchedPage {
  readonly query: SearchQuery;
}

/**
 * Searches for all pages in common batches until every page is complete. Resolves to the
 * milliseconds spent waiting for the engine.
 */
async function searchPages(
  pages: readonly SearchedPage[],
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<number> {
  let waitMs = 0;
  for (;;) {
    const queries = await Promise.all(pages.map(({ page }) => page.next()));
    const searches = pages.flatMap((page, i) => {
      const query = queries[i]!;
      return query === null ? [] : [{ ...page, query }];
    });
    if (searches.length === 0) return waitMs;
    const found = await searchAll(searches, services, signal);
    waitMs += found.waitMs;
    for (const [i, { page }] of searches.entries()) page.accept(found.hits[i]!);
  }
}

/** The hits of each search, in order: those of the engine in one batch, the others beside it. */
async function searchAll(
  searches: readonly PageQuery[],
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<ScheduledHits> {
  const ofEngine = searches.filter(({ opened }) => opened.source === null);
  const searching = searchByEngine(
    ofEngine.map(({ query, opened: { shared: rows } }) => ({ query, rows })),
    services,
    signal,
  );
  if (ofEngine.length === searches.length) return searching;
  const [scheduled, hits] = await Promise.all([searching, searchSources(searches)]);
  const engineHits = scheduled.hits.values();
  return {
    hits: hits.map((found) => found ?? engineHits.next().value!),
    waitMs: scheduled.waitMs,
  };
}

/** Searches of other sources at once: more would occupy the pool and delay other requests. */
const SOURCE_SEARCHES = 4;

/** The hits of the searches that are not of the engine; undefined for those that are. */
async function searchSources(
  searches: readonly PageQuery[],
): Promise<readonly (SearchHits | undefined)[]> {
  const hits: (SearchHits | undefined)[] = [];
  for (let from = 0; from < searches.length; from += SOURCE_SEARCHES) {
    const some = searches.slice(from, from + SOURCE_SEARCHES);
    hits.push(
      ...(await Promise.all(some.map(({ query, opened: { source } }) => source?.search(query)))),
    );
  }
  return hits;
}

function explain(work: QueryWork, timings: QueryTimings, engine: string): Explain {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  return { engine, ...work, isCertified: true, filterMs, searchMs: waitMs + searchMs, assembleMs };
}

function engineOf({ ranking }: QueryPlan, { engine }: DatabaseServices): string {
  if (ranking.kind === 'multi') return 'max_sim';
  return ranking.kind === 'vector' || ranking.kind === 'examples' ? engine.name : ranking.kind;
}

/** What rows are scored by; rankings without vectors have no statistics of scores. */
function scoredQuery({ ranking, scoreThreshold }: QueryPlan): ScoredQuery {
  assert(ranking.kind === 'vector' || ranking.kind === 'examples', 'a ranking by vectors');
  const { vector, metric } = ranking;
  const formula = ranking.kind === 'examples' ? ranking.formula : null;
  return { vector, metric, formula, scoreThreshold };
}

function toMatch(hit: PageHit, plan: QueryPlan, collection: Collection): Match {
  const { row, score, group } = hit;
  const { segment } = hit.view;
  const hasDistance = scoringMetric(plan.ranking) === 'euclidean';
  return {
    id: segment.id(row),
    score: toFloat32(shownScore(plan.ranking, score)),
    ...(hasDistance ? { distance: toFloat32(distanceOf(score)) } : {}),
    ...(group === undefined
      ? {}
      : // JSON has no infinity.
        { group: typeof group === 'number' ? finite(group) : group }),
    ...collection.metadataOf({ segment, row }, plan.includeMetadata),
    ...(plan.includeValues === false ? {} : collection.valuesOf({ segment, row })),
  };
}
