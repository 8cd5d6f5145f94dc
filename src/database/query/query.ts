// Nearest-neighbour queries, one or many together: plans → snapshot → filter → engine → pages.
// A page is one bounded search that starts after the last match of the page before, so the
// thousandth page costs what the first one costs.

import { hasBit } from '../../common/bitmap.js';
import type { Limits } from '../../common/limits.js';
import { distanceOf, type Position, publicScore } from '../../engine/core/engine.js';
import { type FilterNode, filterTests } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { Collection } from '../collection/collection.js';
import type { RowAddress } from '../collection/rows.js';
import {
  countVisible,
  filterViews,
  type SegmentView,
  type Snapshot,
} from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import type { DatabaseServices } from '../database-services.js';
import { observeCursorError, observeReplies } from '../observer.js';
import type { FilterCache } from './filter-cache.js';
import type {
  Explain,
  Match,
  QueryReply,
  QueryRequest,
  QueryTimings,
  QueryWork,
  SortKey,
} from './query-api.js';
import { nextCursor, planQuery, type QueryPlan } from './query-plan.js';
import {
  type Ask,
  type Hit,
  type SearchResult,
  SearchRound,
  type SearchTarget,
  searchTarget,
  searchTargetFor,
} from './search.js';
import { sortHits } from './sort-hits.js';

/** What the queries with one filter at one sequence have in common. */
interface FilteredView {
  readonly snapshot: Snapshot;
  readonly parts: readonly SegmentView[];
  readonly target: SearchTarget;
  readonly visibleCount: number;
  readonly conditionCount: number;
}

interface PageContext {
  readonly view: FilteredView;
  readonly ask: Ask;
  readonly limits: Limits;
}

interface PageOfHits {
  readonly hits: readonly Hit[];
  readonly hasMore: boolean;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

/** One page of one query. The signal ends its waits; throws what `planQuery` throws. */
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
    view.keep(plan.sequence);
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

/** One reply a plan, in order. They share the engine's time, and tell all the same of theirs. */
export async function answerPlans(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  services: DatabaseServices,
  signal: AbortSignal | undefined,
): Promise<readonly QueryReply[]> {
  const { limits, sealer, submitAll, engine } = services;
  const startedAtMs = performance.now();
  // Rows may move while filters and engine are at work; the snapshots stay what they are.
  const excluded = plans.map(({ excludedId, isCounted }) =>
    excludedId === null || !isCounted ? undefined : view.find(excludedId),
  );
  const views = await filteredViews(view, plans, services.filters, signal);
  const filteredAtMs = performance.now();
  signal?.throwIfAborted();
  const round = new SearchRound(submitAll, signal);
  const pages = await Promise.all(
    plans.map((plan, i) => findPage(plan, { view: views[i]!, ask: round.ask, limits })),
  );
  const searchedAtMs = performance.now();
  const found = plans.map((plan, i): Omit<QueryReply, 'timings'> => {
    const page = pages[i]!;
    const { snapshot, parts, visibleCount, conditionCount } = views[i]!;
    const isExcludedShown = isAmong(excluded[i], parts);
    return {
      matches: page.hits.map((hit) => toMatch(hit, plan)),
      valuesEncoding: plan.includeValues === 'base64' ? 'base64' : 'numbers',
      hasMore: page.hasMore,
      nextCursor: page.hasMore
        ? sealer.seal(nextCursor(view.collection, plan, page.hits))
        : undefined,
      // Without the vector that was asked for by id.
      total: plan.isCounted ? visibleCount - (isExcludedShown ? 1 : 0) : undefined,
      sequence: plan.sequence,
      work: {
        conditionCount,
        segmentCount: snapshot.views.length,
        rowsScanned: page.scannedCount,
        rowsPassedFilter: visibleCount,
        candidatesRescored: page.rescoredCount,
      },
    };
  });
  const timings: QueryTimings = {
    startedAtMs,
    filterMs: filteredAtMs - startedAtMs,
    waitMs: round.waitMs,
    searchMs: searchedAtMs - filteredAtMs - round.waitMs,
    assembleMs: performance.now() - searchedAtMs,
  };
  return found.map((reply, i) => {
    if (!plans[i]!.isExplained) return { ...reply, timings };
    return { ...reply, timings, explain: explain(reply.work, timings, engine.name) };
  });
}

function explain(work: QueryWork, timings: QueryTimings, engine: string): Explain {
  const { filterMs, waitMs, searchMs, assembleMs } = timings;
  return { engine, ...work, isCertified: true, filterMs, searchMs: waitMs + searchMs, assembleMs };
}

/** Of each plan; equal filters are evaluated once. */
async function filteredViews(
  view: SnapshotView,
  plans: readonly QueryPlan[],
  filters: FilterCache,
  signal: AbortSignal | undefined,
): Promise<readonly FilteredView[]> {
  const bySequence = new Map<number, Map<FilterNode | null, Promise<FilteredView>>>();
  const making = plans.map(({ sequence, filterNode }) => {
    let ofSnapshot = bySequence.get(sequence);
    if (ofSnapshot === undefined) {
      ofSnapshot = new Map();
      bySequence.set(sequence, ofSnapshot);
    }
    let filtered = ofSnapshot.get(filterNode);
    if (filtered === undefined) {
      const snapshot = view.snapshot(sequence);
      filtered = filterView(filters, snapshot, filterNode, signal);
      ofSnapshot.set(filterNode, filtered);
    }
    return filtered;
  });
  return Promise.all(making);
}

async function filterView(
  filters: FilterCache,
  snapshot: Snapshot,
  filterNode: FilterNode | null,
  signal: AbortSignal | undefined,
): Promise<FilteredView> {
  const parts = await filterViews(filters, snapshot.views, filterNode, signal);
  return {
    snapshot,
    parts,
    target: searchTarget(parts),
    visibleCount: countVisible(parts),
    conditionCount: filterNode === null ? 0 : filterTests(filterNode).length,
  };
}

function findPage(plan: QueryPlan, context: PageContext): Promise<PageOfHits> {
  return plan.sort === null ? nearestPage(plan, context) : sortedPage(plan, plan.sort, context);
}

/** A page in the order of scores. */
async function nearestPage(plan: QueryPlan, context: PageContext): Promise<PageOfHits> {
  let after: Position | null =
    plan.after === null ? null : { score: plan.after.score, id: Buffer.from(plan.after.id) };
  const remaining = (plan.topK ?? Number.POSITIVE_INFINITY) - plan.givenCount - plan.offset;
  const wanted = Math.max(0, Math.min(plan.limit, remaining));
  let toSkip = wanted === 0 ? 0 : plan.offset;
  let scannedCount = 0;
  let rescoredCount = 0;
  const done = (hits: readonly Hit[], hasMore: boolean): PageOfHits => {
    return { hits, hasMore, scannedCount, rescoredCount };
  };
  const next = async (count: number): Promise<readonly Hit[]> => {
    const result = await searchOthers(plan, count, after, context);
    scannedCount += result.scannedCount;
    rescoredCount += result.rescoredCount;
    const last = result.hits.at(-1);
    if (last !== undefined) after = { score: last.score, id: last.view.segment.idBytes(last.row) };
    return result.hits;
  };
  while (toSkip > 0) {
    const count = Math.min(toSkip, context.limits.topKMax);
    const skipped = await next(count);
    toSkip -= skipped.length;
    if (skipped.length < count) return done([], false);
  }
  if (wanted === 0) return done([], false);
  // One more than the page tells whether there is a further page.
  const found = await next(remaining > wanted ? wanted + 1 : wanted);
  return done(found.slice(0, wanted), found.length > wanted);
}

/** A page of the top k in another order. The whole top k is found and sorted for every page. */
async function sortedPage(
  plan: QueryPlan,
  sort: readonly SortKey[],
  context: PageContext,
): Promise<PageOfHits> {
  const topK = plan.topK ?? context.limits.topKDefault;
  const result = await searchOthers(plan, topK, null, context);
  const sorted = sortHits(result.hits, plan.metric, sort);
  const start = plan.givenCount + plan.offset;
  const hits = sorted.slice(start, start + plan.limit);
  return { ...result, hits, hasMore: start + hits.length < sorted.length };
}

/** The best `count` after a place, without the vector that was asked for by id. */
async function searchOthers(
  plan: QueryPlan,
  count: number,
  after: Position | null,
  { view, ask }: PageContext,
): Promise<SearchResult> {
  const result = await searchTargetFor(ask, view.target, {
    vector: plan.vector,
    metric: plan.metric,
    k: plan.excludedId === null ? count : count + 1,
    after,
    scoreMin: plan.scoreThreshold,
  });
  if (plan.excludedId === null) return result;
  const excluded = Buffer.from(plan.excludedId);
  const others = result.hits.filter((hit) => !hit.view.segment.idEquals(hit.row, excluded));
  return { ...result, hits: others.slice(0, count) };
}

function isAmong(address: RowAddress | undefined, parts: readonly SegmentView[]): boolean {
  if (address === undefined) return false;
  const part = parts.find(({ segment }) => segment === address.segment);
  return part !== undefined && (part.rows === null || hasBit(part.rows, address.row));
}

function toMatch({ view: part, row, score }: Hit, plan: QueryPlan): Match {
  const { segment } = part;
  return {
    id: segment.id(row),
    score: toFloat32(publicScore(plan.metric, score)),
    ...(plan.metric === 'euclidean' ? { distance: toFloat32(distanceOf(score)) } : {}),
    ...(plan.includeMetadata ? { metadata: segment.metadata(row) } : {}),
    ...(plan.includeValues === false ? {} : { values: segment.values(row) }),
  };
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Rounded to float32; what lies beyond becomes the largest float32, since JSON has no infinity. */
export function toFloat32(value: number): number {
  return Math.fround(Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, value)));
}
