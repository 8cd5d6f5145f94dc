// The plan of a query: everything that decides its answer, taken from the request of a first page or
// from the cursor that a later page continues.

import { type FieldPath, field, validationError } from '../../common/errors.js';
import { stringifyExactJson } from '../../common/exact-json.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import type { SparseVector } from '../../common/vectors.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { AggregationRequest } from '../aggregate/aggregate-api.js';
import type { Collection } from '../collection/collection.js';
import type { IncludeMetadata } from '../collection/selected-metadata.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import type { Diversity } from './diversify.js';
import type { GroupingRequest } from './group-stage.js';
import { mismatch, openCursor, sameJson } from './paging.js';
import {
  type Prefetch,
  planPrefetch,
  type SealedPrefetch,
  sealPrefetch,
  unsealPrefetch,
} from './prefetch.js';
import type {
  DiversityRequest,
  PrefetchRequest,
  QueryRequest,
  ScoreStatsRequest,
  SortKey,
} from './query-api.js';
import { findGroupSizeIssues, findQueryIssues, groupLimitDefault } from './query-issues.js';
import {
  digestRequest,
  type ExampleRanking,
  planRanking,
  type Ranking,
  type RankingContext,
  type SealedRanking,
  sealRanking,
  unsealRanking,
  unsealSparse,
  type VectorRanking,
} from './ranking.js';
import { findMisplaced } from './ranking-issues.js';
import type { Hit } from './search-target.js';

/** A cursor restores all of it. */
export interface QueryPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly ranking: Ranking;
  /** Of what the ranking was made of, where that cannot be seen in it; else null. */
  readonly rankingDigest: string | null;
  readonly prefetch: Prefetch | null;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly sort: readonly SortKey[] | null;
  /** Then counts and limits are those of groups, except in `isCounted`. */
  readonly grouping: GroupingRequest | null;
  readonly diversity: Diversity | null;
  readonly scoreThreshold: number | null;
  /** The number of best matches that all pages have together; null for all that pass the filter. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: IncludeMetadata;
  readonly includeValues: boolean | 'base64';
  /** Matches on the pages before this one. */
  readonly givenCount: number;
  readonly offset: number;
  readonly after: { readonly score: number; readonly id: string } | null;
  /** Whether the reply has `total`: first pages and pages at an offset do. */
  readonly isCounted: boolean;
  readonly isExplained: boolean;
  /** Null for pages that a cursor continues: the first page has it. */
  readonly aggregation: AggregationRequest | null;
  readonly scoreStats: ScoreStatsRequest | null;
}

/** Groups are found again for every page, hence their number is always bounded. */
export type GroupedPlan = QueryPlan & {
  readonly grouping: GroupingRequest;
  readonly topK: number;
};

export function isGrouped(plan: QueryPlan): plan is GroupedPlan {
  return plan.grouping !== null;
}

/** Chosen again for every page, of a bounded number of candidates. */
export type DiversePlan = QueryPlan & {
  readonly ranking: VectorRanking | ExampleRanking;
  readonly diversity: Diversity;
  readonly topK: number;
};

export function isDiverse(plan: QueryPlan): plan is DiversePlan {
  return plan.diversity !== null;
}

export interface PlanContext extends RankingContext {
  readonly sealer: CursorSealer;
  readonly now: number;
}

/** Throws `invalid_filter` at the path of the filter. Equal filters get the same node, which is then evaluated once. */
export function createFilterParser(collection: Collection, limits: Limits) {
  const byText = new Map<string, FilterNode>();
  return (filter: JsonObject, path: FieldPath): FilterNode => {
    const text = stringifyExactJson(filter);
    let node = byText.get(text);
    if (node === undefined) {
      node = collection.parseFilter(filter, limits, path);
      byText.set(text, node);
    }
    return node;
  };
}

const FILTER_PATH = ['filter'];

/**
 * Throws the issues of the request and of its cursor, and `vector_not_found` for an id without a
 * vector.
 */
export function planQuery(
  view: SnapshotView,
  request: QueryRequest,
  context: PlanContext,
): QueryPlan {
  const issues = findQueryIssues(request, context.limits);
  if (issues.length > 0) throw validationError(issues);
  return request.cursor === undefined
    ? planFirstPage(view, request, context)
    : planNextPage(view.collection, request, request.cursor, context);
}

function planFirstPage(view: SnapshotView, request: QueryRequest, context: PlanContext): QueryPlan {
  const { limits, now, parseFilter } = context;
  const sort = request.sort === undefined || request.sort.length === 0 ? null : request.sort;
  // A first page that names no bound itself gets one.
  const hasDefaultTop = request.limit === undefined && request.scoreThreshold === undefined;
  const grouping =
    request.groupBy === undefined ? null : { path: request.groupBy, size: request.groupSize ?? 1 };
  const diversity =
    request.diversity === undefined ? null : planDiversity(request.diversity, request, limits);
  const topKUnset = grouping === null ? (diversity?.candidateCount ?? null) : limits.topKMax;
  const topK = request.topK ?? (hasDefaultTop ? limits.topKDefault : topKUnset);
  const limitUnset =
    grouping === null ? limits.pageLimitDefault : groupLimitDefault(grouping.size, limits);
  const filterNode = request.filter === undefined ? null : parseFilter(request.filter, FILTER_PATH);
  const ranking = planRanking(view, request, context);
  requireComparable(ranking, request);
  return {
    sequence: view.sequence,
    openedAtMs: now,
    ranking,
    rankingDigest: digestRanking(request),
    prefetch: request.prefetch === undefined ? null : planPrefetch(view, request.prefetch, context),
    filter: request.filter ?? null,
    filterNode,
    sort,
    grouping,
    diversity,
    scoreThreshold: request.scoreThreshold ?? null,
    topK,
    limit: request.limit ?? request.topK ?? (hasDefaultTop ? limits.topKDefault : limitUnset),
    includeMetadata: request.includeMetadata ?? false,
    includeValues: request.includeValues ?? false,
    givenCount: 0,
    offset: request.offset ?? 0,
    after: null,
    isCounted: true,
    isExplained: request.explain === true,
    aggregation:
      request.facets === undefined && request.stats === undefined
        ? null
        : { facets: request.facets, stats: request.stats },
    scoreStats: request.scoreStats ?? null,
  };
}

/** Throws `invalid_request` for what compares or summarizes scores of single vectors. */
function requireComparable({ kind }: Ranking, { diversity, scoreStats }: QueryRequest): void {
  if (kind !== 'multi') return;
  const members = { mmr: diversity, score_stats: scoreStats };
  const issues = findMisplaced(members, ['mmr', 'score_stats'], 'a multi-vector', field);
  if (issues.length > 0) throw validationError(issues);
}

/** By default among a hundred, or among the matches of all pages if these are more. */
function planDiversity(
  { lambda, candidateCount }: DiversityRequest,
  { topK = 0 }: QueryRequest,
  { diversityCandidatesDefault, diversityCandidatesMax }: Limits,
): Diversity {
  const unset = Math.min(diversityCandidatesMax, Math.max(diversityCandidatesDefault, topK));
  return { lambda, candidateCount: candidateCount ?? unset };
}

function planNextPage(
  collection: Collection,
  request: QueryRequest,
  token: string,
  context: PlanContext,
): QueryPlan {
  const { sealer, limits, now, parseFilter } = context;
  const cursor = openCursor(token, 'query', collection, { sealer, limits, now });
  const { ranking, rankingDigest, prefetch } = cursor;
  const isByVector =
    (ranking.kind === 'vector' || ranking.kind === 'multi') && rankingDigest === null;
  const isSameMade = digestRanking(request) === rankingDigest;
  const text = ranking.kind === 'text' ? ranking.request : null;
  const repeated: [keyof QueryRequest, string, boolean][] = [
    ['vector', 'vector', isByVector && sameVector(request.vector, ranking.vector)],
    ['id', 'id', isByVector && request.id === ranking.excludedIds[0]],
    ['multiVector', 'multi_vector', isSameMade],
    ['text', 'text', sameJson(request.text, text)],
    ['sparse', 'sparse', isSameSparse(request.sparse, ranking)],
    ['recommend', 'recommend', isSameMade],
    ['discover', 'discover', isSameMade],
    ['fusion', 'fusion', isSameMade],
    ['prefetch', 'prefetch', isSamePrefetch(request.prefetch, prefetch)],
    ['diversity', 'mmr', isSameDiversity(request.diversity, cursor.diversity)],
    ['using', 'using', request.using === usingOf(ranking)],
    ['topK', 'top_k', request.topK === cursor.topK],
    ['filter', 'filter', sameJson(request.filter, cursor.filter)],
    ['metric', 'metric', request.metric === metricOf(ranking)],
    ['sort', 'sort', sameJson(request.sort, cursor.sort ?? [])],
    ['groupBy', 'group_by', request.groupBy === cursor.grouping?.path],
    ['groupSize', 'group_size', request.groupSize === cursor.grouping?.size],
    ['scoreThreshold', 'score_threshold', request.scoreThreshold === cursor.scoreThreshold],
    ['minSequence', 'min_sequence', (request.minSequence ?? 0) <= cursor.sequence],
  ];
  for (const [field, name, isSame] of repeated) {
    if (request[field] !== undefined && !isSame) throw mismatch(name);
  }
  const limit = request.limit ?? cursor.limit;
  if (cursor.grouping !== null) {
    const issues = findGroupSizeIssues(limit, cursor.grouping.size, limits);
    if (issues.length > 0) throw validationError(issues);
  }
  return {
    sequence: cursor.sequence,
    openedAtMs: cursor.openedAtMs,
    ranking: unsealRanking(ranking, collection, context),
    rankingDigest,
    prefetch: prefetch && unsealPrefetch(prefetch, collection, context),
    filter: cursor.filter,
    filterNode: cursor.filter === null ? null : parseFilter(cursor.filter, FILTER_PATH),
    sort: cursor.sort,
    grouping: cursor.grouping,
    diversity: cursor.diversity,
    scoreThreshold: cursor.scoreThreshold,
    topK: cursor.topK,
    limit,
    includeMetadata: request.includeMetadata ?? cursor.includeMetadata,
    includeValues: request.includeValues ?? cursor.includeValues,
    givenCount: cursor.givenCount,
    offset: 0,
    after: cursor.after,
    isCounted: false,
    isExplained: request.explain === true,
    aggregation: null,
    scoreStats: null,
  };
}

/** The content of the cursor that continues after a page. */
export function nextCursor(
  collection: Collection,
  plan: QueryPlan,
  { hits, count }: { readonly hits: readonly Hit[]; readonly count: number },
): QueryCursor {
  const last = hits[hits.length - 1]!;
  const isPositioned = plan.sort === null && plan.grouping === null && plan.diversity === null;
  return {
    kind: 'query',
    incarnation: collection.incarnation,
    sequence: plan.sequence,
    openedAtMs: plan.openedAtMs,
    filter: plan.filter,
    limit: plan.limit,
    includeMetadata: plan.includeMetadata,
    includeValues: plan.includeValues,
    ranking: sealRanking(plan.ranking, collection),
    rankingDigest: plan.rankingDigest,
    prefetch: plan.prefetch && sealPrefetch(plan.prefetch, collection),
    topK: plan.topK,
    sort: plan.sort,
    grouping: plan.grouping,
    diversity: plan.diversity,
    scoreThreshold: plan.scoreThreshold,
    givenCount: plan.givenCount + plan.offset + count,
    after: isPositioned ? { score: last.score, id: last.view.segment.id(last.row) } : null,
  };
}

/** Without a number of candidates it is that of the first page. */
function isSameDiversity(sent: DiversityRequest | undefined, sealed: Diversity | null): boolean {
  if (sent === undefined || sealed === null) return false;
  const { lambda, candidateCount = sealed.candidateCount } = sent;
  return lambda === sealed.lambda && candidateCount === sealed.candidateCount;
}

function sameVector(sent: Float32Array | undefined, sealed: Float32Array): boolean {
  return sent !== undefined && sameElements(sent, sealed);
}

function sameElements<Elements extends Float32Array | Uint32Array>(
  sent: Elements,
  sealed: Elements,
): boolean {
  return sent.length === sealed.length && sent.every((x, i) => x === sealed[i]);
}

function isSameSparse(sent: SparseVector | undefined, sealed: SealedRanking): boolean {
  if (sent === undefined || sealed.kind !== 'sparse') return false;
  const { indices, values } = unsealSparse(sealed);
  return sameElements(sent.indices, indices) && sameElements(sent.values, values);
}

function usingOf(ranking: SealedRanking): string | undefined {
  return 'using' in ranking ? (ranking.using ?? undefined) : undefined;
}

function metricOf(ranking: SealedRanking): string | undefined {
  return 'metric' in ranking ? ranking.metric : undefined;
}

/** By which a cursor recognizes the members that it does not keep; null for a request without any. */
function digestRanking(query: QueryRequest): string | null {
  const request = query.recommend ?? query.discover ?? query.fusion ?? query.multiVector;
  return request === undefined ? null : digestRequest(request);
}

function isSamePrefetch(sent: PrefetchRequest | undefined, sealed: SealedPrefetch | null): boolean {
  return sent !== undefined && digestRequest(sent) === sealed?.digest;
}
