// Nearest-neighbour queries, one or many together: plan, take a snapshot, filter, search, cut the
// page and seal the cursor of the next one.

import { clearBit, createFullBitmap, hasBit } from '../../common/bitmap.js';
import { distanceOf, type SearchHits } from '../../engine/core/engine.js';
import { searchByExamples } from '../../engine/core/example-search.js';
import { type FilterNode, filterTests } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { WorkerPool } from '../../platform/pool.js';
import { aggregateViews } from '../aggregate/aggregate.js';
import type { Aggregations } from '../aggregate/aggregate-api.js';
import { finite } from '../aggregate/row-set.js';
import type { Collection } from '../collection/collection.js';
import type { RowAddress } from '../collection/rows.js';
import {
  countVisible,
  type SegmentView,
  type Snapshot,
  viewsOfNamed,
} from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { observeCursorError, observeReplies } from '../observer.js';
import { DiverseSearch } from './diverse-search.js';
import type { FilterCache } from './filter-cache.js';
import { GroupedSearch } from './grouped-search.js';
import { type PageHit, PageSearch, type PageSteps } from './page-search.js';
import { type PlannedSearch, shownScore } from './planned-search.js';
import type {
  Explain,
  Match,
  QueryReply,
  QueryRequest,
  QueryTimings,
  QueryWork,
} from './query-api.js';
import { isDiverse, isGrouped, nextCursor, planQuery, type QueryPlan } from './query-plan.js';
import { findScoreStats } from './score-stats.js';
import type { ScheduledHits } from './search-scheduler.js';
import { type SearchTarget, searchTarget, toFloat32 } from './search-target.js';
import { openTextSearch, type TextQuery, type TextSearch } from './text-query.js';

/** What the queries of one vector with one filter at one sequence have in common. */
interface FilteredSnapshot {
  readonly snapshot: Snapshot;
  /** With only the rows that pass the filter and have the vector. */
  readonly views: readonly SegmentView[];
  readonly target: SearchTarget;
  readonly visibleCount: number;
  readonly conditionCount: number;
  /** Null for queries by vectors. */
  readonly textSearch: TextSearch | null;
}

/** One page of one query. Throws what `planQuery` throws; rejects with the signal's reason. */
export async function runQuery(
  collection: Collection,
  request: QueryRequest,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<QueryReply> {
  const { catalogue, limits, sealer, clock, observer } = services;
  if (request.minSequence !== undefined && request.cursor === undefined) {
    await collection.waitForSequence(request.minSequence, signal);
  }
  const view = new SnapshotView(collection, () => catalogue.isServing(collection));
  try {
    const plan = planQuery(view, request, {
      limits,
      sealer,
      now: clock.now(),
      parseFilter: (filter) => parseFilter(filter, limits),
    });
    view.pin(plan.sequence);
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
  const { limits, sealer, filters, pool } = services;
  const startedAtMs = performance.now();
  // Rows may move while filters and engine are at work; the snapshots stay what they are.
  const excluded = plans.map(({ excludedIds, isCounted }) =>
    isCounted ? excludedIds.flatMap((id) => view.find(id) ?? []) : [],
  );
  const unmatched = await filterSnapshots(view, plans, filters, signal);
  const filtered: FilteredSnapshot[] = [];
  // One after another, so that a batch does not occupy the main thread.
  for (const [i, { text }] of plans.entries()) {
    filtered.push(await matchWords(text, unmatched[i]!, services, signal));
  }
  const filteredAtMs = performance.now();
  signal?.throwIfAborted();
  const pages = plans.map((plan, i): PageSteps => {
    const { target } = filtered[i]!;
    if (isGrouped(plan)) {
      return new GroupedSearch(plan, target, { pool, topKMax: limits.topKMax, signal });
    }
    if (isDiverse(plan)) return new DiverseSearch(plan, target, { pool, signal });
    return new PageSearch(plan, target, limits);
  });
  const [waitMs, aggregations] = await Promise.all([
    searchPages(
      pages.map((page, i) => ({ page, textSearch: filtered[i]!.textSearch })),
      services,
      signal,
    ),
    aggregateAll(plans, filtered, excluded, services, signal),
  ]);
  const searchedAtMs = performance.now();
  const replies = plans.map((plan, i): Omit<QueryReply, 'timings'> => {
    const page = pages[i]!;
    const { hits, hasMore, scannedCount, rescoredCount } = page;
    const { snapshot, views, visibleCount, conditionCount } = filtered[i]!;
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

type QueryAggregations = Aggregations & Pick<QueryReply, 'scoreStats'>;

/** The facets and stats of each plan: of the rows that its `total` counts. */
async function aggregateAll(
  plans: readonly QueryPlan[],
  filtered: readonly FilteredSnapshot[],
  excluded: readonly (readonly RowAddress[])[],
  { pool, observer }: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryAggregations[]> {
  return Promise.all(
    plans.map(async (plan, i): Promise<QueryAggregations> => {
      const { aggregation, scoreStats } = plan;
      if (aggregation === null && scoreStats === null) return {};
      const startedAtMs = performance.now();
      const views = excluded[i]!.reduce(withoutRow, filtered[i]!.views);
      const [aggregations, foundScores] = await Promise.all([
        aggregation && aggregateViews(pool, views, aggregation, signal),
        scoreStats && findScoreStats(pool, views, plan, scoreStats.histogram, signal),
      ]);
      observer.aggregated(performance.now() - startedAtMs);
      return { ...aggregations, ...(foundScores && { scoreStats: foundScores }) };
    }),
  );
}

/** The views without a row that they may show. */
function withoutRow(views: readonly SegmentView[], address: RowAddress): readonly SegmentView[] {
  if (!isVisible(address, views)) return views;
  const { segment, row } = address;
  return views.map((view) => {
    if (view.segment !== segment) return view;
    const rows = createFullBitmap(view.rowCount);
    if (view.rows !== null) rows.words.set(view.rows.words.subarray(0, rows.words.length));
    clearBit(rows, row);
    return { ...view, rows, visibleCount: view.visibleCount - 1 };
  });
}

/** A page, and what searches for it in place of the engine if it has words. */
interface SearchedPage {
  readonly page: PageSteps;
  readonly textSearch: TextSearch | null;
}

/** One search of a page. */
interface PageQuery {
  readonly query: PlannedSearch;
  readonly textSearch: TextSearch | null;
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
  { scheduler, pool }: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<ScheduledHits> {
  const engineSearches = searches.flatMap(({ query, textSearch }) =>
    query.formula === null && textSearch === null ? [query] : [],
  );
  if (engineSearches.length === searches.length) return scheduler.search(engineSearches, signal);
  const [scheduled, hits] = await Promise.all([
    scheduler.search(engineSearches, signal),
    searchInTurn(searches, pool, signal),
  ]);
  const engineHits = scheduled.hits.values();
  return {
    hits: hits.map((found) => found ?? engineHits.next().value!),
    waitMs: scheduled.waitMs,
  };
}

/** The hits of searches by examples and words, one after another: each fills the pool. Null for other searches. */
async function searchInTurn(
  searches: readonly PageQuery[],
  pool: WorkerPool,
  signal: AbortSignal | undefined,
): Promise<readonly (SearchHits | null)[]> {
  const hits: (SearchHits | null)[] = [];
  for (const { query, textSearch } of searches) {
    const { formula, ...search } = query;
    if (textSearch !== null) hits.push(await textSearch.search(search));
    else if (formula === null) hits.push(null);
    else {
      const options = signal === undefined ? {} : { signal };
      hits.push(await searchByExamples(pool, { ...search, formula }, options));
    }
  }
  return hits;
}

function explain(work: QueryWork, timings: QueryTimings, engine: string): Explain {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  return { engine, ...work, isCertified: true, filterMs, searchMs: waitMs + searchMs, assembleMs };
}

/** One a plan, in order; plans with the same sequence, filter node and vector share one. */
async function filterSnapshots(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  filters: FilterCache,
  signal: AbortSignal | undefined,
): Promise<readonly FilteredSnapshot[]> {
  const byRows = new Map<string, Map<FilterNode | null, Promise<FilteredSnapshot>>>();
  const filtering = plans.map(({ sequence, filterNode, using }) => {
    const key = `${sequence}/${using ?? ''}`;
    let byFilter = byRows.get(key);
    if (byFilter === undefined) {
      byFilter = new Map();
      byRows.set(key, byFilter);
    }
    let filtered = byFilter.get(filterNode);
    if (filtered === undefined) {
      const snapshot = view.snapshot(sequence);
      filtered = filterSnapshot(snapshot, { filterNode, using }, filters, signal);
      byFilter.set(filterNode, filtered);
    }
    return filtered;
  });
  return Promise.all(filtering);
}

async function filterSnapshot(
  snapshot: Snapshot,
  { filterNode, using }: Pick<QueryPlan, 'filterNode' | 'using'>,
  filters: FilterCache,
  signal: AbortSignal | undefined,
): Promise<FilteredSnapshot> {
  const passing = await filters.filter(snapshot.views, filterNode, signal);
  const views = using === null ? passing : viewsOfNamed(passing, using);
  return {
    snapshot,
    views,
    target: searchTarget(views),
    visibleCount: countVisible(views),
    conditionCount: filterNode === null ? 0 : filterTests(filterNode).length,
    textSearch: null,
  };
}

/** With only the rows that match the text, if the query has one. */
async function matchWords(
  text: TextQuery | null,
  filtered: FilteredSnapshot,
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<FilteredSnapshot> {
  if (text === null) return filtered;
  const { snapshot, views: passing } = filtered;
  const textSearch = await openTextSearch(text, snapshot.views, passing, services, signal);
  const { views } = textSearch;
  const target = searchTarget(views);
  return { ...filtered, views, target, visibleCount: countVisible(views), textSearch };
}

function engineOf({ text }: QueryPlan, { engine }: DatabaseServices): string {
  return text === null ? engine.name : 'text';
}

function isVisible(address: RowAddress, views: readonly SegmentView[]): boolean {
  const view = views.find(({ segment }) => segment === address.segment);
  return view !== undefined && (view.rows === null || hasBit(view.rows, address.row));
}

function toMatch(hit: PageHit, plan: QueryPlan, collection: Collection): Match {
  const { row, score, group } = hit;
  const { segment } = hit.view;
  const hasDistance = plan.metric === 'euclidean' && plan.formula === null;
  return {
    id: segment.id(row),
    score: toFloat32(shownScore(plan, hit)),
    ...(hasDistance ? { distance: toFloat32(distanceOf(score)) } : {}),
    ...(group === undefined
      ? {}
      : // JSON has no infinity.
        { group: typeof group === 'number' ? finite(group) : group }),
    ...(plan.includeMetadata ? { metadata: segment.metadata(row) } : {}),
    ...(plan.includeValues === false ? {} : collection.valuesOf({ segment, row })),
  };
}
