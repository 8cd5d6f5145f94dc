// The plan of a query: everything that decides its answer, taken from the request of a first page or
// from the cursor that a later page continues. Every check of a query's meaning is made here.

import {
  field,
  type IssueLocation,
  type ValidationIssue,
  validationError,
} from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { JsonObject, Metric } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { AggregationRequest } from '../aggregate/aggregate-api.js';
import { type Collection, vectorNotFound } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import type { GroupingRequest } from './group-stage.js';
import { findPageIssues, mismatch, openCursor, sameJson } from './paging.js';
import type { QueryRequest, ScoreStatsRequest, SortKey } from './query-api.js';
import type { Hit } from './search-target.js';

/** A cursor restores all of it. */
export interface QueryPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly vector: Float32Array;
  readonly excludedId: string | null;
  readonly metric: Metric;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly sort: readonly SortKey[] | null;
  /** Then counts and limits are those of groups, except in `isCounted`. */
  readonly grouping: GroupingRequest | null;
  readonly scoreThreshold: number | null;
  /** The number of nearest vectors that all pages have together; null for all that pass the filter. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: boolean;
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

export interface PlanContext {
  readonly sealer: CursorSealer;
  readonly limits: Limits;
  readonly now: number;
  readonly parseFilter: FilterParser;
}

/** Throws `invalid_filter` at the field `filter`. */
export type FilterParser = (filter: JsonObject) => FilterNode;

/** Equal filters get the same node, which is then evaluated once. */
export function createFilterParser(limits: Limits): FilterParser {
  const byText = new Map<string, FilterNode>();
  return (filter) => {
    const text = JSON.stringify(filter);
    let node = byText.get(text);
    if (node === undefined) {
      node = parseFilter(filter, limits);
      byText.set(text, node);
    }
    return node;
  };
}

/**
 * The issues of a query that show without its collection and its cursor, each at the location of its
 * field. `planQuery` finds the others.
 */
export function findQueryIssues(
  request: QueryRequest,
  limits: Limits,
  locate: (name: string) => IssueLocation = field,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const { vector, id, cursor, topK, limit, sort, groupBy } = request;
  if (vector !== undefined && id !== undefined) {
    const detail = 'Expected vector or id; found both.';
    issues.push({ location: locate('id'), code: 'invalid_request', detail });
  }
  if (vector === undefined && id === undefined && cursor === undefined) {
    const detail = 'Expected vector or id; found neither.';
    issues.push({ location: locate('vector'), code: 'invalid_request', detail });
  }
  issues.push(...findPageIssues(request, limits, locate));
  const { topKMax } = limits;
  const isPaged = limit !== undefined || cursor !== undefined;
  const isBounded = sort !== undefined || groupBy !== undefined;
  if (topK !== undefined && topK > topKMax && (isBounded || !isPaged)) {
    issues.push({
      location: locate('top_k'),
      code: 'limit_exceeded',
      detail: isBounded
        ? `Expected at most ${topKMax} for a sorted or grouped query; found ${topK}.`
        : `Expected at most ${topKMax} matches in one page; found ${topK}. Set limit to read more in pages.`,
      expected: topKMax,
      actual: topK,
    });
  }
  issues.push(...findGroupIssues(request, limits, locate));
  return issues;
}

function findGroupIssues(
  request: QueryRequest,
  limits: Limits,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  const { cursor, sort, groupBy, groupSize } = request;
  const issues: ValidationIssue[] = [];
  if (groupBy !== undefined && sort !== undefined) {
    const detail = 'Expected sort or group_by; found both.';
    issues.push({ location: locate('group_by'), code: 'invalid_request', detail });
  }
  if (groupBy === undefined && groupSize !== undefined && cursor === undefined) {
    const detail = 'Expected group_size only with group_by; found it alone.';
    issues.push({ location: locate('group_size'), code: 'invalid_request', detail });
  }
  if (groupBy !== undefined && cursor === undefined) {
    issues.push(...findGroupSizeIssues(groupsPerPage(request, limits), groupSize, limits, locate));
  }
  return issues;
}

/** A page of groups has as many matches at most as other pages. */
function findGroupSizeIssues(
  groupCount: number,
  groupSize = 1,
  { topKMax }: Limits,
  locate: (name: string) => IssueLocation = field,
): ValidationIssue[] {
  const actual = groupCount * groupSize;
  if (actual <= topKMax) return [];
  const detail = `Expected at most ${topKMax} matches in one page; found ${groupCount} groups of ${groupSize}. Set a lower limit to read them in pages.`;
  const bound = { expected: topKMax, actual };
  return [{ location: locate('group_size'), code: 'limit_exceeded', detail, ...bound }];
}

/** The groups of a first page. */
function groupsPerPage(
  { topK, limit, scoreThreshold, groupSize = 1 }: QueryRequest,
  limits: Limits,
): number {
  const unset =
    scoreThreshold === undefined ? limits.topKDefault : groupLimitDefault(groupSize, limits);
  return Math.min(limit ?? topK ?? unset, topK ?? Number.POSITIVE_INFINITY);
}

/** The page size of grouped queries that set neither `limit` nor `top_k`. */
function groupLimitDefault(groupSize: number, { pageLimitDefault, topKMax }: Limits): number {
  return Math.max(1, Math.min(pageLimitDefault, Math.floor(topKMax / groupSize)));
}

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

function planFirstPage(
  view: SnapshotView,
  request: QueryRequest,
  { limits, now, parseFilter }: PlanContext,
): QueryPlan {
  const { collection } = view;
  const sort = request.sort === undefined || request.sort.length === 0 ? null : request.sort;
  // Sorting needs a bound; so does a first page that names none itself.
  const hasDefaultTop =
    sort !== null || (request.limit === undefined && request.scoreThreshold === undefined);
  const grouping =
    request.groupBy === undefined ? null : { path: request.groupBy, size: request.groupSize ?? 1 };
  const topKUnset = grouping === null ? null : limits.topKMax;
  const topK = request.topK ?? (hasDefaultTop ? limits.topKDefault : topKUnset);
  const limitUnset =
    grouping === null ? limits.pageLimitDefault : groupLimitDefault(grouping.size, limits);
  const metric = request.metric ?? collection.definition.metric;
  const vector = request.vector ?? storedVector(view, request.id!);
  collection.checkQueryVector(vector, metric, field(request.id === undefined ? 'vector' : 'id'));
  const filterNode = request.filter === undefined ? null : parseFilter(request.filter);
  return {
    sequence: view.sequence,
    openedAtMs: now,
    vector,
    excludedId: request.id ?? null,
    metric,
    filter: request.filter ?? null,
    filterNode,
    sort,
    grouping,
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

function storedVector(view: SnapshotView, id: string): Float32Array {
  const address = view.find(id);
  if (address === undefined) throw vectorNotFound(view.collection.definition.id, id);
  return address.segment.values(address.row);
}

function planNextPage(
  collection: Collection,
  request: QueryRequest,
  token: string,
  { sealer, limits, now, parseFilter }: PlanContext,
): QueryPlan {
  const cursor = openCursor(token, 'query', collection, { sealer, limits, now });
  const repeated: [keyof QueryRequest, string, boolean][] = [
    ['vector', 'vector', sameVector(request.vector, cursor.vector)],
    ['id', 'id', request.id === cursor.id],
    ['topK', 'top_k', request.topK === cursor.topK],
    ['filter', 'filter', sameJson(request.filter, cursor.filter)],
    ['metric', 'metric', request.metric === cursor.metric],
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
    vector: cursor.vector,
    excludedId: cursor.id,
    metric: cursor.metric,
    filter: cursor.filter,
    filterNode: cursor.filter === null ? null : parseFilter(cursor.filter),
    sort: cursor.sort,
    grouping: cursor.grouping,
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
  const isPositioned = plan.sort === null && plan.grouping === null;
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
    grouping: plan.grouping,
    scoreThreshold: plan.scoreThreshold,
    givenCount: plan.givenCount + plan.offset + count,
    after: isPositioned ? { score: last.score, id: last.view.segment.id(last.row) } : null,
  };
}

function sameVector(sent: Float32Array | undefined, sealed: Float32Array): boolean {
  return (
    sent !== undefined && sent.length === sealed.length && sent.every((x, i) => x === sealed[i])
  );
}
