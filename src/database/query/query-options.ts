// The options of a query, except its ranking: a table of how each is read from a first page and from a
// cursor. A new option is a member of `PlannedOptions`, a line of the table, and the code that uses it.

import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import type { AggregationRequest } from '../api/aggregate-api.js';
import type {
  DiversityRequest,
  IncludeMetadata,
  QueryRequest,
  ScoreStatsRequest,
  SortKey,
} from '../api/query-api.js';
import { sameJson } from '../api/repeated.js';
import type { Diversity } from './diversify.js';
import type { GroupingRequest } from './group-stage.js';
import { type OptionTable, optionKinds } from './page-options.js';

export interface PlannedOptions {
  readonly filter: JsonObject | null;
  readonly sort: readonly SortKey[] | null;
  /** If not null, counts and limits count groups, except in `isCounted`. */
  readonly grouping: GroupingRequest | null;
  readonly diversity: Diversity | null;
  readonly scoreThreshold: number | null;
  /** The number of best matches on all pages together; null for all that pass the filter. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: IncludeMetadata;
  readonly includeValues: boolean | 'base64';
  readonly includeSequence: boolean;
  readonly isExplained: boolean;
  /** Null for pages after the first. */
  readonly aggregation: AggregationRequest | null;
  readonly scoreStats: ScoreStatsRequest | null;
}

const { fixed, changeable, ofEachPage, ofFirstPage } = optionKinds<QueryRequest>();

export const QUERY_OPTIONS: OptionTable<QueryRequest, PlannedOptions> = {
  filter: fixed(({ filter = null }) => filter, { filter: sameJson }),
  sort: fixed(({ sort = [] }) => (sort.length === 0 ? null : sort), {
    sort: (sent, sort) => sameJson(sent, sort ?? []),
  }),
  grouping: fixed(planGrouping, {
    groupBy: (sent, grouping) => sent === grouping?.path,
    groupSize: (sent, grouping) => sent === grouping?.size,
  }),
  diversity: fixed(planDiversity, { diversity: isSameDiversity }),
  scoreThreshold: fixed(({ scoreThreshold = null }) => scoreThreshold, {
    scoreThreshold: isEqual,
  }),
  topK: fixed(planTopK, { topK: isEqual }),
  limit: changeable('limit', firstLimit),
  includeMetadata: changeable('includeMetadata', () => false),
  includeValues: changeable('includeValues', () => false),
  includeSequence: changeable('includeSequence', () => false),
  isExplained: ofEachPage(({ explain = false }) => explain),
  aggregation: ofFirstPage(({ facets, stats }) =>
    facets === undefined && stats === undefined ? null : { facets, stats },
  ),
  scoreStats: ofFirstPage(({ scoreStats = null }) => scoreStats),
};

/** Unlike `Object.is`, treats 0 and -0 as equal, because cursors do not distinguish them. */
function isEqual<Value>(sent: Value, sealed: Value | null): boolean {
  return sent === sealed;
}

function planGrouping({ groupBy, groupSize = 1 }: QueryRequest): GroupingRequest | null {
  return groupBy === undefined ? null : { path: groupBy, size: groupSize };
}

/** By default chooses from 100 candidates, or from as many as all pages have matches, if these are more. */
function planDiversity(
  { diversity, topK = 0 }: QueryRequest,
  { diversityCandidatesDefault, diversityCandidatesMax }: Limits,
): Diversity | null {
  if (diversity === undefined) return null;
  const unset = Math.min(diversityCandidatesMax, Math.max(diversityCandidatesDefault, topK));
  return { lambda: diversity.lambda, candidateCount: diversity.candidateCount ?? unset };
}

/** The number of candidates is by default that of the first page. */
function isSameDiversity(sent: DiversityRequest, sealed: Diversity | null): boolean {
  if (sealed === null) return false;
  const { lambda, candidateCount = sealed.candidateCount } = sent;
  return lambda === sealed.lambda && candidateCount === sealed.candidateCount;
}

/** Whether a first page names no bound, so that it gets the default. */
function hasDefaultTop({ limit, scoreThreshold }: QueryRequest): boolean {
  return limit === undefined && scoreThreshold === undefined;
}

function planTopK(request: QueryRequest, limits: Limits): number | null {
  if (request.topK !== undefined) return request.topK;
  if (hasDefaultTop(request)) return limits.topKDefault;
  if (request.groupBy !== undefined) return limits.topKMax;
  return planDiversity(request, limits)?.candidateCount ?? null;
}

/** The maximum number of matches or groups on a first page. */
export function firstLimit(request: QueryRequest, limits: Limits): number {
  if (request.limit !== undefined) return request.limit;
  if (request.topK !== undefined) return request.topK;
  if (hasDefaultTop(request)) return limits.topKDefault;
  const grouping = planGrouping(request);
  return grouping === null ? limits.pageLimitDefault : groupLimitDefault(grouping.size, limits);
}

/** The page size of grouped queries that set neither `limit` nor `top_k`. */
function groupLimitDefault(groupSize: number, { pageLimitDefault, topKMax }: Limits): number {
  return Math.max(1, Math.min(pageLimitDefault, Math.floor(topKMax / groupSize)));
}
