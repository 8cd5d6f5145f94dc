// Facets and stats of the rows that pass a filter, from one snapshot. Segments are counted in parallel and merged;
// every result is exact and independent of segments, threads and their order.

import type { JsonObject } from '../../common/types.js';
import type { WorkerPool } from '../../platform/pool.js';
import type {
  AggregateReply,
  AggregateRequest,
  AggregationRequest,
  Aggregations,
  Facet,
  FacetRequest,
  Stats,
  StatsRequest,
} from '../api/aggregate-api.js';
import type { Collection } from '../collection/collection.js';
import { reachSequence } from '../collection/reach-sequence.js';
import { countVisible, type SegmentView } from '../collection/snapshot.js';
import { SnapshotView } from '../collection/snapshot-view.js';
import { findUnknownPaths } from '../collection/unknown-paths.js';
import type { ReadServices } from '../search/read-services.js';
import { type AggregateTarget, aggregateSegments, mergeInPool } from './aggregate-task.js';
import {
  addSummaries,
  bucketBounds,
  EMPTY_SUMMARY,
  toHistogram,
  toStats,
} from './number-summary.js';
import { withoutPath } from './own-filter.js';

/** Rejects with `invalid_filter`, `overloaded` and the signal's reason. */
export async function runAggregate(
  collection: Collection,
  request: AggregateRequest,
  services: ReadServices,
  signal: AbortSignal | undefined,
): Promise<AggregateReply> {
  const { collections, filters, limits, observer, pool } = services;
  await reachSequence(collection, request.minSequence ?? 0, signal);
  const view = new SnapshotView(collection, collections);
  try {
    const node =
      request.filter === undefined ? null : collection.parseFilter(request.filter, limits);
    const startedAtMs = performance.now();
    const all = view.snapshot().views;
    const views = await filters.filter(all, node, signal);
    const ownViews = await viewsOfFacets(request.facets, request.filter, (filter) =>
      filters.filter(all, filter && collection.parseFilter(filter, limits), signal),
    );
    const aggregations = await aggregateViews(pool, views, request, signal, ownViews);
    observer.observe('sagitta_aggregation_seconds', (performance.now() - startedAtMs) / 1000);
    return {
      count: countVisible(views),
      ...aggregations,
      sequence: view.sequence,
      warnings: findUnknownPaths(collection, views, { ...request, filter: node }),
    };
  } finally {
    view.close();
  }
}

/** The rows of facets that ignore their own filter, by path. */
type OwnViews = ReadonlyMap<string, readonly SegmentView[]>;

/**
 * The rows of facets that ignore conditions on their own path. `select` returns the rows that pass a filter, or all
 * rows for null. Facets without such conditions are left out.
 */
export async function viewsOfFacets(
  facets: readonly FacetRequest[] = [],
  filter: JsonObject | null | undefined,
  select: (filter: JsonObject | null) => Promise<readonly SegmentView[]>,
): Promise<OwnViews> {
  if (filter === null || filter === undefined) return new Map();
  const paths = new Set(facets.filter((facet) => facet.ignoreOwnFilter).map(({ path }) => path));
  const found = new Map<string, readonly SegmentView[]>();
  for (const path of paths) {
    const rest = withoutPath(filter, path);
    if (rest !== filter) found.set(path, await select(rest));
  }
  return found;
}

/** The facets and stats of all visible rows of the views. */
export async function aggregateViews(
  pool: WorkerPool,
  views: readonly SegmentView[],
  { facets, stats }: AggregationRequest,
  signal: AbortSignal | undefined,
  ownViews: OwnViews = new Map(),
): Promise<Aggregations> {
  const targets = views.filter(({ visibleCount }) => visibleCount > 0);
  const rowCount = countVisible(targets);
  const [foundFacets, foundStats] = await Promise.all([
    facets && findAllFacets(pool, targets, facets, ownViews, signal),
    stats && findStats(pool, targets, stats, rowCount, signal),
  ]);
  return { facets: foundFacets, stats: foundStats };
}

/** Counts facets over the same rows in one pass. */
async function findAllFacets(
  pool: WorkerPool,
  views: readonly SegmentView[],
  facets: readonly FacetRequest[],
  ownViews: OwnViews,
  signal: AbortSignal | undefined,
): Promise<readonly Facet[]> {
  const isOwn = ({ path, ignoreOwnFilter = false }: FacetRequest) =>
    ignoreOwnFilter && ownViews.has(path);
  const common = facets.filter((facet) => !isOwn(facet));
  const counted = common.length === 0 ? [] : await findFacets(pool, views, common, signal);
  const found: Facet[] = [];
  for (const facet of facets) {
    if (isOwn(facet)) {
      const own = ownViews.get(facet.path)!.filter(({ visibleCount }) => visibleCount > 0);
      found.push(...(await findFacets(pool, own, [facet], signal)));
    } else {
      found.push(counted[common.indexOf(facet)]!);
    }
  }
  return found;
}

async function findFacets(
  pool: WorkerPool,
  views: readonly SegmentView[],
  facets: readonly FacetRequest[],
  signal: AbortSignal | undefined,
): Promise<readonly Facet[]> {
  const rowCount = countVisible(views);
  const work = { values: facets.map(({ path }) => path), numbers: [], buckets: [] };
  const segments = await aggregateSegments(pool, views, work, signal);
  return Promise.all(
    facets.map(async ({ path, limit }, i): Promise<Facet> => {
      const parts = segments.map(({ values }) => values[i]!);
      const merged = await mergeInPool(pool, parts, limit);
      const withValue = parts.reduce((sum, part) => sum + part.rowCount, 0);
      return { path, ...merged, missingCount: rowCount - withValue };
    }),
  );
}

/** The stats over all targets, which have `rowCount` rows in total. */
export async function findStats(
  pool: WorkerPool,
  views: readonly AggregateTarget[],
  stats: readonly StatsRequest[],
  rowCount: number,
  signal: AbortSignal | undefined,
): Promise<readonly Stats[]> {
  const work = { values: [], numbers: stats.map(({ path }) => path), buckets: [] };
  const segments = await aggregateSegments(pool, views, work, signal);
  const summaries = stats.map((_, i) =>
    segments.reduce((sum, { numbers }) => addSummaries(sum, numbers[i]!), EMPTY_SUMMARY),
  );
  const found = stats.map(({ path }, i) => toStats(path, summaries[i]!, rowCount));
  // The range of the buckets depends on all numbers, which requires a second pass.
  const wanted = stats.flatMap(({ path, histogram }, i) =>
    histogram === undefined || found[i]!.count === 0
      ? []
      : [{ index: i, path, bounds: bucketBounds(histogram, summaries[i]!) }],
  );
  if (wanted.length === 0) return found;
  const buckets = wanted.map(({ path, bounds }) => ({ path, bounds }));
  const counted = await aggregateSegments(
    pool,
    views,
    { values: [], numbers: [], buckets },
    signal,
  );
  for (const [i, { index, bounds }] of wanted.entries()) {
    const counts = new Float64Array(bounds.length + 1);
    for (const segment of counted) {
      for (const [bucket, count] of segment.buckets[i]!.entries()) counts[bucket]! += count;
    }
    found[index] = { ...found[index]!, histogram: toHistogram(bounds, counts) };
  }
  return found;
}
