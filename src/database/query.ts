// Nearest-neighbour queries: request or cursor → plan → snapshot → filter → engine → page.
// A page is one bounded search that starts after the last match of the page before, so the
// thousandth page costs what the first one costs.

import { distanceOf, type Position, publicScore } from '../engine/engine.js';
import { filterTests } from '../filter/filter-node.js';
import type { Limits } from '../limits.js';
import type {
  Explain,
  Match,
  QueryReply,
  QueryRequest,
  QueryTimings,
  QueryWork,
  SortKey,
} from './api.js';
import type { Collection } from './collection.js';
import type { CursorSealer } from './cursor.js';
import type { FilterCache } from './filter-cache.js';
import { nextCursor, planQuery, type QueryPlan } from './query-plan.js';
import { type Hit, type SearchResult, type SubmitSearch, searchParts } from './search.js';
import { countVisible, filterParts, type SnapshotPart } from './snapshot.js';
import { sortHits } from './sort-hits.js';

export interface QueryContext {
  readonly filters: FilterCache;
  readonly submit: SubmitSearch;
  readonly sealer: CursorSealer;
  readonly limits: Limits;
  readonly engineName: string;
  readonly now: number;
  readonly signal: AbortSignal | undefined;
}

interface PageOfHits {
  readonly hits: readonly Hit[];
  readonly hasMore: boolean;
  readonly scannedCount: number;
  readonly rescoredCount: number;
  readonly waitMs: number;
}

export async function runQuery(
  collection: Collection,
  request: QueryRequest,
  context: QueryContext,
): Promise<QueryReply> {
  const plan = planQuery(collection, request, context);
  const startedAt = performance.now();
  const snapshot = collection.snapshot(plan.sequence);
  const { filters, signal } = context;
  const parts = await filterParts(filters, snapshot.parts, plan.filterNode, signal);
  const filteredAt = performance.now();
  context.signal?.throwIfAborted();
  const page =
    plan.sort === null
      ? await nearestPage(parts, plan, context)
      : await sortedPage(parts, plan, plan.sort, context);
  const searchedAt = performance.now();
  const reply: Omit<QueryReply, 'timings' | 'work'> = {
    matches: page.hits.map((hit) => toMatch(hit, plan)),
    valuesEncoding: plan.includeValues === 'base64' ? 'base64' : 'numbers',
    hasMore: page.hasMore,
    nextCursor: page.hasMore
      ? context.sealer.seal(nextCursor(collection, plan, page.hits))
      : undefined,
    total: plan.isCounted ? countView(collection, parts, plan) : undefined,
    sequence: plan.sequence,
  };
  const work: QueryWork = {
    conditionCount: plan.filterNode === null ? 0 : filterTests(plan.filterNode).length,
    segmentCount: snapshot.parts.length,
    rowsScanned: page.scannedCount,
    rowsPassedFilter: countVisible(parts),
    candidatesRescored: page.rescoredCount,
  };
  const timings: QueryTimings = {
    startedAtMs: startedAt,
    filterMs: filteredAt - startedAt,
    waitMs: page.waitMs,
    searchMs: searchedAt - filteredAt - page.waitMs,
    assembleMs: performance.now() - searchedAt,
  };
  if (request.explain !== true) return { ...reply, timings, work };
  const explain: Explain = {
    engine: context.engineName,
    ...work,
    isCertified: true,
    filterMs: timings.filterMs,
    searchMs: searchedAt - filteredAt,
    assembleMs: timings.assembleMs,
  };
  return { ...reply, explain, timings, work };
}

/** A page in the order of scores. */
async function nearestPage(
  parts: readonly SnapshotPart[],
  plan: QueryPlan,
  context: QueryContext,
): Promise<PageOfHits> {
  let after: Position | null =
    plan.after === null ? null : { score: plan.after.score, id: Buffer.from(plan.after.id) };
  const remaining = (plan.topK ?? Number.POSITIVE_INFINITY) - plan.givenCount - plan.offset;
  const wanted = Math.max(0, Math.min(plan.limit, remaining));
  let toSkip = wanted === 0 ? 0 : plan.offset;
  let scannedCount = 0;
  let rescoredCount = 0;
  let waitMs = 0;
  const done = (hits: readonly Hit[], hasMore: boolean): PageOfHits => {
    return { hits, hasMore, scannedCount, rescoredCount, waitMs };
  };
  const next = async (count: number): Promise<readonly Hit[]> => {
    const result = await searchOthers(parts, plan, count, after, context);
    scannedCount += result.scannedCount;
    rescoredCount += result.rescoredCount;
    waitMs += result.waitMs;
    const last = result.hits.at(-1);
    if (last !== undefined) after = { score: last.score, id: last.part.segment.idBytes(last.row) };
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
  parts: readonly SnapshotPart[],
  plan: QueryPlan,
  sort: readonly SortKey[],
  context: QueryContext,
): Promise<PageOfHits> {
  const topK = plan.topK ?? context.limits.topKDefault;
  const result = await searchOthers(parts, plan, topK, null, context);
  const sorted = sortHits(result.hits, plan.metric, sort);
  const start = plan.givenCount + plan.offset;
  const hits = sorted.slice(start, start + plan.limit);
  return { ...result, hits, hasMore: start + hits.length < sorted.length };
}

/** The best `count` after a place, without the vector that was asked for by id. */
async function searchOthers(
  parts: readonly SnapshotPart[],
  plan: QueryPlan,
  count: number,
  after: Position | null,
  { submit, signal }: QueryContext,
): Promise<SearchResult> {
  const result = await searchParts(
    submit,
    parts,
    {
      vector: plan.vector,
      metric: plan.metric,
      k: plan.excludedId === null ? count : count + 1,
      after,
      scoreMin: plan.scoreThreshold,
    },
    signal,
  );
  if (plan.excludedId === null) return result;
  const excluded = Buffer.from(plan.excludedId);
  const others = result.hits.filter((hit) => !hit.part.segment.idEquals(hit.row, excluded));
  return { ...result, hits: others.slice(0, count) };
}

/** The exact size of the filtered view, without the vector that was asked for by id. */
function countView(
  collection: Collection,
  parts: readonly SnapshotPart[],
  plan: QueryPlan,
): number {
  const count = countVisible(parts);
  if (plan.excludedId === null) return count;
  return collection.isIdAmong(Buffer.from(plan.excludedId), parts) ? count - 1 : count;
}

function toMatch({ part, row, score }: Hit, plan: QueryPlan): Match {
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
function toFloat32(value: number): number {
  return Math.fround(Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, value)));
}
