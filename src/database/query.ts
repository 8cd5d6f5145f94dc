// Nearest-neighbour queries: request or cursor → plan → snapshot → filter → engine → merge → page.
// A page is one bounded search that starts after the last match of the page before, so the
// thousandth page costs what the first one costs.

import { distanceOf, type Position, publicScore } from '../engine/engine.js';
import { SagittaError } from '../errors.js';
import type { FilterNode } from '../filter/filter-node.js';
import type { Limits } from '../limits.js';
import { resolvePath } from '../metadata-path.js';
import type { WorkerPool } from '../pool.js';
import type { Json, JsonObject, Metric } from '../types.js';
import type { Explain, Match, QueryReply, QueryRequest, SortKey } from './api.js';
import type { Collection } from './collection.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import { parseFilterAt } from './filter-at.js';
import { checkPaging, mismatch, openCursor, sameJson } from './paging.js';
import { type Hit, type SearchResult, type SubmitSearch, searchParts } from './search.js';
import { countVisible, filterSnapshot, type SnapshotPart } from './snapshot.js';

export interface QueryContext {
  readonly pool: WorkerPool;
  readonly submit: SubmitSearch;
  readonly sealer: CursorSealer;
  readonly limits: Limits;
  readonly engineName: string;
  readonly now: number;
  readonly signal: AbortSignal | undefined;
}

/** Everything that decides the answer; a cursor restores all of it. */
interface QueryPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly vector: Float32Array;
  readonly excludedId: string | null;
  readonly metric: Metric;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly sort: readonly SortKey[] | null;
  readonly scoreThreshold: number | null;
  /** The nearest that the walk goes through; null for the whole filtered view. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: boolean;
  readonly includeValues: boolean | 'base64';
  /** Where this page starts. */
  readonly givenCount: number;
  readonly offset: number;
  readonly after: { readonly score: number; readonly id: string } | null;
  /** Whether the reply counts the filtered view: first and offset pages do. */
  readonly isCounted: boolean;
}

interface PageOfHits {
  readonly hits: readonly Hit[];
  readonly hasMore: boolean;
  readonly scannedCount: number;
  readonly rescoredCount: number;
}

export async function runQuery(
  collection: Collection,
  request: QueryRequest,
  context: QueryContext,
): Promise<QueryReply> {
  checkPaging('query', request, context.limits);
  const plan =
    request.cursor === undefined
      ? planFirstPage(collection, request, context)
      : planNextPage(collection, request, request.cursor, context);
  const startedAt = performance.now();
  const snapshot = collection.snapshot(plan.sequence);
  const parts = await filterSnapshot(context.pool, snapshot, plan.filterNode);
  const filteredAt = performance.now();
  context.signal?.throwIfAborted();
  const page =
    plan.sort === null
      ? await nearestPage(parts, plan, context)
      : await sortedPage(parts, plan, plan.sort, context);
  const searchedAt = performance.now();
  const matches = page.hits.map((hit) => toMatch(hit, plan));
  const reply: QueryReply = {
    matches,
    valuesEncoding: plan.includeValues === 'base64' ? 'base64' : 'numbers',
    hasMore: page.hasMore,
    nextCursor: page.hasMore
      ? context.sealer.seal(nextCursor(collection, plan, page.hits))
      : undefined,
    total: plan.isCounted ? countView(collection, parts, plan) : undefined,
    sequence: plan.sequence,
  };
  if (request.explain !== true) return reply;
  const explain: Explain = {
    engine: context.engineName,
    segmentCount: snapshot.parts.length,
    rowsScanned: page.scannedCount,
    rowsPassedFilter: countVisible(parts),
    candidatesRescored: page.rescoredCount,
    isCertified: true,
    filterMs: filteredAt - startedAt,
    searchMs: searchedAt - filteredAt,
    assembleMs: performance.now() - searchedAt,
  };
  return { ...reply, explain };
}

function planFirstPage(
  collection: Collection,
  request: QueryRequest,
  { limits, now }: QueryContext,
): QueryPlan {
  if ((request.vector === undefined) === (request.id === undefined)) {
    const found = request.vector === undefined ? 'neither' : 'both';
    throw invalid('', `A query has exactly one of vector and id; found ${found}.`);
  }
  const sort = request.sort === undefined || request.sort.length === 0 ? null : request.sort;
  // Without a bound on the walk there is no "top" to sort.
  const topK =
    request.topK ?? (request.limit === undefined || sort !== null ? limits.topKDefault : null);
  if (topK !== null && topK > limits.topKMax && (request.limit === undefined || sort !== null)) {
    throw invalid(
      '/top_k',
      sort === null
        ? `top_k beyond ${limits.topKMax} needs a limit, to be read in pages.`
        : `A sorted query takes a top_k of at most ${limits.topKMax}.`,
      { expected: limits.topKMax, actual: topK },
    );
  }
  const metric = request.metric ?? collection.definition.metric;
  const vector = request.vector ?? storedVector(collection, request.id!);
  collection.checkQueryVector(vector, metric);
  const filterNode =
    request.filter === undefined ? null : parseFilterAt('/filter', request.filter, limits);
  return {
    sequence: collection.sequence,
    openedAtMs: now,
    vector,
    excludedId: request.id ?? null,
    metric,
    filter: request.filter ?? null,
    filterNode,
    sort,
    scoreThreshold: request.scoreThreshold ?? null,
    topK,
    limit: request.limit ?? topK ?? limits.pageLimitDefault,
    includeMetadata: request.includeMetadata ?? false,
    includeValues: request.includeValues ?? false,
    givenCount: 0,
    offset: request.offset ?? 0,
    after: null,
    isCounted: true,
  };
}

function storedVector(collection: Collection, id: string): Float32Array {
  const { segment, row } = collection.require(id);
  return segment.values(row);
}

function planNextPage(
  collection: Collection,
  request: QueryRequest,
  token: string,
  { sealer, limits, now }: QueryContext,
): QueryPlan {
  const cursor = openCursor(token, 'query', collection, { sealer, limits, now });
  const repeated: [keyof QueryRequest, string, boolean][] = [
    ['vector', 'vector', sameVector(request.vector, cursor.vector)],
    ['id', 'id', request.id === cursor.id],
    ['topK', 'top_k', request.topK === cursor.topK],
    ['filter', 'filter', sameJson(request.filter, cursor.filter)],
    ['metric', 'metric', request.metric === cursor.metric],
    ['sort', 'sort', sameJson(request.sort, cursor.sort ?? [])],
    ['scoreThreshold', 'score_threshold', request.scoreThreshold === cursor.scoreThreshold],
    ['minSequence', 'min_sequence', (request.minSequence ?? 0) <= cursor.sequence],
  ];
  for (const [field, name, isSame] of repeated) {
    if (request[field] !== undefined && !isSame) throw mismatch('query', name);
  }
  return {
    sequence: cursor.sequence,
    openedAtMs: cursor.openedAtMs,
    vector: cursor.vector,
    excludedId: cursor.id,
    metric: cursor.metric,
    filter: cursor.filter,
    filterNode: cursor.filter === null ? null : parseFilterAt('/filter', cursor.filter, limits),
    sort: cursor.sort,
    scoreThreshold: cursor.scoreThreshold,
    topK: cursor.topK,
    limit: request.limit ?? cursor.limit,
    includeMetadata: request.includeMetadata ?? cursor.includeMetadata,
    includeValues: request.includeValues ?? cursor.includeValues,
    givenCount: cursor.givenCount,
    offset: 0,
    after: cursor.after,
    isCounted: false,
  };
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
  const next = async (count: number): Promise<readonly Hit[]> => {
    const result = await searchOthers(parts, plan, count, after, context);
    scannedCount += result.scannedCount;
    rescoredCount += result.rescoredCount;
    const last = result.hits.at(-1);
    if (last !== undefined) after = { score: last.score, id: last.part.segment.idBytes(last.row) };
    return result.hits;
  };
  while (toSkip > 0) {
    const count = Math.min(toSkip, context.limits.topKMax);
    const skipped = await next(count);
    toSkip -= skipped.length;
    if (skipped.length < count) return { hits: [], hasMore: false, scannedCount, rescoredCount };
  }
  if (wanted === 0) return { hits: [], hasMore: false, scannedCount, rescoredCount };
  // One more than the page tells whether there is a further page.
  const found = await next(remaining > wanted ? wanted + 1 : wanted);
  return {
    hits: found.slice(0, wanted),
    hasMore: found.length > wanted,
    scannedCount,
    rescoredCount,
  };
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

function nextCursor(collection: Collection, plan: QueryPlan, hits: readonly Hit[]): QueryCursor {
  const last = hits[hits.length - 1]!;
  return {
    kind: 'query',
    incarnation: collection.incarnation,
    sequence: plan.sequence,
    openedAtMs: plan.openedAtMs,
    filter: plan.filter,
    limit: plan.limit,
    includeMetadata: plan.includeMetadata,
    includeValues: plan.includeValues,
    metric: plan.metric,
    vector: plan.vector,
    id: plan.excludedId,
    topK: plan.topK,
    sort: plan.sort,
    scoreThreshold: plan.scoreThreshold,
    givenCount: plan.givenCount + plan.offset + hits.length,
    after: plan.sort === null ? { score: last.score, id: last.part.segment.id(last.row) } : null,
  };
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
    score: Math.fround(publicScore(plan.metric, score)),
    ...(plan.metric === 'euclidean' ? { distance: Math.fround(distanceOf(score)) } : {}),
    ...(plan.includeMetadata ? { metadata: segment.metadata(row) } : {}),
    ...(plan.includeValues === false ? {} : { values: segment.values(row) }),
  };
}

/** Stable: equal keys keep the order of scores. Rows without a comparable value come last, whatever the order. */
function sortHits(hits: readonly Hit[], metric: Metric, sort: readonly SortKey[]): Hit[] {
  const isMetadataRead = sort.some(({ field }) => field !== 'score' && field !== 'id');
  const rows = hits.map((hit) => {
    const metadata = isMetadataRead
      ? (JSON.parse(hit.part.segment.metadata(hit.row)) as JsonObject)
      : {};
    const values = sort.map(({ field }): Json | undefined => {
      if (field === 'score') return publicScore(metric, hit.score);
      if (field === 'id') return hit.part.segment.id(hit.row);
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

/** Numbers before strings before booleans before everything else. */
function sortRank(value: Json | undefined): number {
  if (typeof value === 'number') return 0;
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
      : Number(a) - Number(b);
  return order === 'asc' ? ascending : -ascending;
}

function sameVector(sent: Float32Array | undefined, sealed: Float32Array): boolean {
  return (
    sent !== undefined && sent.length === sealed.length && sent.every((x, i) => x === sealed[i])
  );
}

function invalid(
  pointer: string,
  detail: string,
  bound: { expected?: number; actual?: number } = {},
): SagittaError {
  return new SagittaError('invalid_request', detail, {
    items: [{ pointer, code: 'invalid_request', detail, ...bound }],
  });
}
