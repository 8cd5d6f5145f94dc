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
import type { Formula } from '../../engine/core/example-search.js';
import type { FilterNode } from '../../filter/filter-node.js';
import { parseFilter } from '../../filter/parse.js';
import type { AggregationRequest } from '../aggregate/aggregate-api.js';
import { type Collection, type SearchedVector, vectorNotFound } from '../collection/collection.js';
import type { SnapshotView } from '../collection/snapshot-view.js';
import type { CursorSealer, QueryCursor } from './cursor.js';
import type { Diversity } from './diversify.js';
import {
  digestExamples,
  findExampleIssues,
  type PlannedExamples,
  planDiscover,
  planRecommend,
} from './examples.js';
import type { GroupingRequest } from './group-stage.js';
import { findPageIssues, mismatch, openCursor, sameJson } from './paging.js';
import type { DiversityRequest, QueryRequest, ScoreStatsRequest, SortKey } from './query-api.js';
import type { Hit } from './search-target.js';
import { analyzeText, type TextQuery } from './text-query.js';

/** A cursor restores all of it. */
export interface QueryPlan {
  readonly sequence: number;
  readonly openedAtMs: number;
  /** One query vector, or with a formula the examples, row-major [exampleCount, dimension]. Empty for a text. */
  readonly vector: Float32Array;
  /** The named vector that is searched; null for the unnamed one. */
  readonly using: string | null;
  readonly text: TextQuery | null;
  readonly formula: Formula | null;
  readonly examplesDigest: string | null;
  readonly excludedIds: readonly string[];
  /** Of text queries `dot`: their scores, too, are shown as they are. */
  readonly metric: Metric;
  readonly filter: JsonObject | null;
  readonly filterNode: FilterNode | null;
  readonly sort: readonly SortKey[] | null;
  /** Then counts and limits are those of groups, except in `isCounted`. */
  readonly grouping: GroupingRequest | null;
  readonly diversity: Diversity | null;
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

/** Chosen again for every page, of a bounded number of candidates. */
export type DiversePlan = QueryPlan & {
  readonly diversity: Diversity;
  readonly topK: number;
};

export function isDiverse(plan: QueryPlan): plan is DiversePlan {
  return plan.diversity !== null;
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
  const { cursor, topK, limit, sort, groupBy } = request;
  const targets = TARGETS.filter((name) => request[name] !== undefined);
  if (targets.length > 1) {
    const detail = `Expected one of ${TARGETS.join(', ')}; found ${targets.join(' and ')}.`;
    issues.push({ location: locate(targets[1]!), code: 'invalid_request', detail });
  }
  if (request.embed !== undefined && cursor !== undefined) {
    const detail =
      'Expected embed or cursor; found both. Send the cursor alone: it has the vector.';
    issues.push({ location: locate('embed'), code: 'invalid_request', detail });
  }
  if (request.embed !== undefined && request.using !== undefined) {
    const detail = 'Expected embed without using: texts become unnamed vectors.';
    issues.push({ location: locate('using'), code: 'invalid_request', detail });
  }
  if (targets.length === 0 && cursor === undefined) {
    const detail = `Expected one of ${TARGETS.join(', ')}; found none.`;
    issues.push({ location: locate('vector'), code: 'invalid_request', detail });
  }
  issues.push(...findTextIssues(request, locate));
  issues.push(...findExampleIssues(request, limits, locate));
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
  issues.push(...findDiversityIssues(request, limits, locate));
  return issues;
}

/** The members that say what to search for. */
const TARGETS = ['vector', 'id', 'embed', 'text', 'recommend', 'discover'] as const;

/** Members that compare vectors do not go with text. */
function findTextIssues(
  { text, metric, using, diversity, scoreStats }: QueryRequest,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  if (text === undefined) return [];
  const members = { metric, using, mmr: diversity, score_stats: scoreStats };
  return Object.entries(members).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const detail = `${name} is for queries by vectors; found it with text, which BM25 ranks.`;
    return [{ location: locate(name), code: 'invalid_request', detail }];
  });
}

function findDiversityIssues(
  { diversity, topK, sort, groupBy }: QueryRequest,
  { diversityCandidatesMax }: Limits,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  if (diversity === undefined) return [];
  const issues: ValidationIssue[] = [];
  if (sort !== undefined || groupBy !== undefined) {
    const other = sort === undefined ? 'group_by' : 'sort';
    const detail = `Expected mmr or ${other}; found both.`;
    issues.push({ location: locate('mmr'), code: 'invalid_request', detail });
  }
  const { candidateCount = diversityCandidatesMax } = diversity;
  if (topK !== undefined && topK > candidateCount) {
    const detail = `Expected at most as many as mmr has candidates (${candidateCount}); found ${topK}.`;
    const bound = { expected: candidateCount, actual: topK };
    issues.push({ location: locate('top_k'), code: 'limit_exceeded', detail, ...bound });
  }
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
  const sort = request.sort === undefined || request.sort.length === 0 ? null : request.sort;
  // Sorting needs a bound; so does a first page that names none itself.
  const hasDefaultTop =
    sort !== null || (request.limit === undefined && request.scoreThreshold === undefined);
  const grouping =
    request.groupBy === undefined ? null : { path: request.groupBy, size: request.groupSize ?? 1 };
  const diversity =
    request.diversity === undefined ? null : planDiversity(request.diversity, request, limits);
  const topKUnset = grouping === null ? (diversity?.candidateCount ?? null) : limits.topKMax;
  const topK = request.topK ?? (hasDefaultTop ? limits.topKDefault : topKUnset);
  const limitUnset =
    grouping === null ? limits.pageLimitDefault : groupLimitDefault(grouping.size, limits);
  const filterNode = request.filter === undefined ? null : parseFilter(request.filter);
  return {
    sequence: view.sequence,
    openedAtMs: now,
    ...planTarget(view, request, limits),
    examplesDigest: digestExamples(request),
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

/** By default among a hundred, or among the matches of all pages if these are more. */
function planDiversity(
  { lambda, candidateCount }: DiversityRequest,
  { topK = 0 }: QueryRequest,
  { diversityCandidatesDefault, diversityCandidatesMax }: Limits,
): Diversity {
  const unset = Math.min(diversityCandidatesMax, Math.max(diversityCandidatesDefault, topK));
  return { lambda, candidateCount: candidateCount ?? unset };
}

/** What is searched for. */
function planTarget(
  view: SnapshotView,
  request: QueryRequest,
  limits: Limits,
): PlannedExamples & Pick<QueryPlan, 'text' | 'using' | 'metric'> {
  const { collection } = view;
  if (request.text !== undefined) {
    const text = analyzeText(collection, request.text, limits);
    return { vector: NO_VECTOR, formula: null, excludedIds: [], text, using: null, metric: 'dot' };
  }
  const using = request.using ?? null;
  const shape = collection.shapeOf(using, field('using'));
  const metric = request.metric ?? shape.metric;
  const { dimension } = shape;
  return { ...planVectors(view, request, { dimension, metric, using }), text: null, using, metric };
}

const NO_VECTOR = new Float32Array(0);

function planVectors(
  view: SnapshotView,
  { vector, id, recommend, discover }: QueryRequest,
  searched: SearchedVector,
): PlannedExamples {
  if (recommend !== undefined) return planRecommend(view, recommend, searched);
  if (discover !== undefined) return planDiscover(view, discover, searched);
  const target = vector ?? storedVector(view, id!, searched.using);
  view.collection.checkQueryVector(target, searched, field(id === undefined ? 'vector' : 'id'));
  return { vector: target, formula: null, excludedIds: id === undefined ? [] : [id] };
}

function storedVector(view: SnapshotView, id: string, using: string | null): Float32Array {
  const { collection } = view;
  const address = view.find(id);
  const values = address && collection.storedValues(address, using);
  if (values !== undefined) return values;
  throw vectorNotFound(collection.definition.id, id, address && using);
}

function planNextPage(
  collection: Collection,
  request: QueryRequest,
  token: string,
  { sealer, limits, now, parseFilter }: PlanContext,
): QueryPlan {
  const cursor = openCursor(token, 'query', collection, { sealer, limits, now });
  const hasExamples = cursor.examplesDigest !== null;
  const repeated: [keyof QueryRequest, string, boolean][] = [
    ['vector', 'vector', !hasExamples && sameVector(request.vector, cursor.vector)],
    ['id', 'id', !hasExamples && request.id === cursor.excludedIds[0]],
    ['text', 'text', sameJson(request.text, cursor.text)],
    ['recommend', 'recommend', digestExamples(request) === cursor.examplesDigest],
    ['discover', 'discover', digestExamples(request) === cursor.examplesDigest],
    ['diversity', 'mmr', isSameDiversity(request.diversity, cursor.diversity)],
    ['using', 'using', request.using === (cursor.using ?? undefined)],
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
    using: cursor.using ?? null,
    text: cursor.text === null ? null : analyzeText(collection, cursor.text, limits),
    formula: cursor.formula,
    examplesDigest: cursor.examplesDigest,
    excludedIds: cursor.excludedIds,
    metric: cursor.metric,
    filter: cursor.filter,
    filterNode: cursor.filter === null ? null : parseFilter(cursor.filter),
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
    metric: plan.metric,
    vector: plan.vector,
    ...(plan.using === null ? {} : { using: plan.using }),
    text: plan.text?.request ?? null,
    formula: plan.formula,
    examplesDigest: plan.examplesDigest,
    excludedIds: plan.excludedIds,
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
  return (
    sent !== undefined && sent.length === sealed.length && sent.every((x, i) => x === sealed[i])
  );
}
