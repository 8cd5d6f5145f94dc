// The options of a query beside what it ranks by: one table of what they are on a first page, and on a page that a cursor
// continues. A new option is a member of `PlannedOptions`, a line of the table, and where it is carried out.

import type { Limits } from '../../common/limits.js';
import type { JsonObject } from '../../common/types.js';
import type { AggregationRequest } from '../aggregate/aggregate-api.js';
import type { IncludeMetadata } from '../collection/selected-metadata.js';
import type { Diversity } from './diversify.js';
import type { GroupingRequest } from './group-stage.js';
import type { DiversityRequest, QueryRequest, ScoreStatsRequest, SortKey } from './query-api.js';
import { requireRepeated, sameJson } from './repeated.js';

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

/** Those that a cursor keeps. */
export type SealedOptions = Partial<PlannedOptions>;

interface Option<Value> {
  /** Whether a cursor keeps it. */
  readonly isSealed: boolean;
  first(request: QueryRequest, limits: Limits): Value;
  /** Throws `cursor_mismatch` for a request that may not change it. */
  next(request: QueryRequest, sealed: Value): Value;
}

const OPTIONS: { readonly [Name in keyof PlannedOptions]: Option<PlannedOptions[Name]> } = {
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
  limit: changeable('limit', planLimit),
  includeMetadata: changeable('includeMetadata', () => false),
  includeValues: changeable('includeValues', () => false),
  includeSequence: changeable('includeSequence', () => false),
  isExplained: ofEachPage(({ explain = false }) => explain),
  aggregation: ofFirstPage(({ facets, stats }) =>
    facets === undefined && stats === undefined ? null : { facets, stats },
  ),
  scoreStats: ofFirstPage(({ scoreStats = null }) => scoreStats),
};

export function firstOptions(request: QueryRequest, limits: Limits): PlannedOptions {
  return mapOptions((_name, option) => option.first(request, limits));
}

/** Throws `cursor_mismatch`. */
export function nextOptions(request: QueryRequest, sealed: SealedOptions): PlannedOptions {
  return mapOptions((name, option) => option.next(request, sealed[name]));
}

export function sealOptions(options: PlannedOptions): SealedOptions {
  const names = Object.keys(OPTIONS) as (keyof PlannedOptions)[];
  const sealed = names.filter((name) => OPTIONS[name].isSealed);
  return Object.fromEntries(sealed.map((name) => [name, options[name]]));
}

function mapOptions(
  map: (name: keyof PlannedOptions, option: Option<unknown>) => unknown,
): PlannedOptions {
  const options = Object.entries(OPTIONS) as [keyof PlannedOptions, Option<unknown>][];
  const values = options.map(([name, option]) => [name, map(name, option)]);
  return Object.fromEntries(values) as PlannedOptions;
}

/** One of the first page: with a cursor, its members may only be repeated. */
function fixed<Value>(
  first: (request: QueryRequest, limits: Limits) => Value,
  repeats: {
    readonly [Member in keyof QueryRequest]?: (
      sent: NonNullable<QueryRequest[Member]>,
      sealed: Value,
    ) => boolean;
  },
): Option<Value> {
  return {
    isSealed: true,
    first,
    next(request, sealed) {
      requireRepeated(request, repeats, sealed);
      return sealed;
    },
  };
}

/** One that each page may change, and else has from the page before. */
function changeable<Name extends keyof PlannedOptions & keyof QueryRequest>(
  name: Name,
  unset: (request: QueryRequest, limits: Limits) => PlannedOptions[Name],
): Option<PlannedOptions[Name]> {
  const sent = (request: QueryRequest) => request[name] as PlannedOptions[Name] | undefined;
  return {
    isSealed: true,
    first: (request, limits) => sent(request) ?? unset(request, limits),
    next: (request, sealed) => sent(request) ?? sealed,
  };
}

function ofEachPage<Value>(read: (request: QueryRequest) => Value): Option<Value> {
  return { isSealed: false, first: read, next: read };
}

function ofFirstPage<Value>(read: (request: QueryRequest) => Value | null): Option<Value | null> {
  return { isSealed: false, first: read, next: () => null };
}

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

function planLimit(request: QueryRequest, limits: Limits): number {
  if (request.topK !== undefined) return request.topK;
  if (hasDefaultTop(request)) return limits.topKDefault;
  const grouping = planGrouping(request);
  return grouping === null ? limits.pageLimitDefault : groupLimitDefault(grouping.size, limits);
}

/** The page size of grouped queries that set neither `limit` nor `top_k`. */
export function groupLimitDefault(
  groupSize: number,
  { pageLimitDefault, topKMax }: Limits,
): number {
  return Math.max(1, Math.min(pageLimitDefault, Math.floor(topKMax / groupSize)));
}
