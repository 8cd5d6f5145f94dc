// The options of a query beside what it ranks by: one table of what they are on a first page, and on a page that a cursor
// continues. A new option is a member of `PlannedOptions`, a line of the table, and where it is carried out.

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
  /** Then counts and limits are those of groups, except in `isCounted`. */
  readonly grouping: GroupingRequest | null;
  readonly diversity: Diversity | null;
  readonly scoreThreshold: number | null;
  /** The number of best matches that all pages have together; null for all that pass the filter. */
  readonly topK: number | null;
  readonly limit: number;
  readonly includeMetadata: IncludeMetadata;
  readonly includeValues: boolean | 'base64';
  readonly includeSequence: boolean;
  readonly isExplained: boolean;
  /** Null for pages that a cursor continues: the first page has it. */
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

/** Unlike `Object.is`, of 0 and -0, too: cursors do not tell them apart. */
function isEqual<Value>(sent: Value, sealed: Value | null): boolean {
  return sent === sealed;
}

function planGrouping({ groupBy, groupSize = 1 }: QueryRequest): GroupingRequest | null {
  return groupBy === undefined ? null : { path: groupBy, size: groupSize };
}

/** By default among a hundred, or among the matches of all pages if these are more. */
function planDiversity(
  { diversity, topK = 0 }: QueryRequest,
  { diversityCandidatesDefault, diversityCandidatesMax }: Limits,
): Diversity | null {
  if (diversity === undefined) return null;
  const unset = Math.min(diversityCandidatesMax, Math.max(diversityCandidatesDefault, topK));
  return { lambda: diversity.lambda, candidateCount: diversity.candidateCount ?? unset };
}

/** Without a number of candidates it is that of the first page. */
function isSameDiversity(sent: DiversityRequest, sealed: Diversity | null): boolean {
  if (sealed === null) return false;
  const { lambda, candidateCount = sealed.candidateCount } = sent;
  return lambda === sealed.lambda && candidateCount === sealed.candidateCount;
}

/** A first page that names no bound itself gets one. */
function hasDefaultTop({ limit, scoreThreshold }: QueryRequest): boolean {
  return limit === undefined && scoreThreshold === undefined;
}

function planTopK(request: QueryRequest, limits: Limits): number | null {
  if (request.topK !== undefined) return request.topK;
  if (hasDefaultTop(request)) return limits.topKDefault;
  if (request.groupBy !== undefined) return limits.topKMax;
  return planDiversity(request, limits)?.candidateCount ?? null;
}

/** The most matches of a first page, or groups. */
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
