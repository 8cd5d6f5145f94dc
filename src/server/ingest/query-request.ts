// Queries from the wire to the database: their fields, and what they cost.

import type { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import type { AggregationRequest } from '../../database/api/aggregate-api.js';
import type { QueryRequest, RankingRequest } from '../../database/api/query-api.js';
import type { SampleRequest } from '../../database/bulk/sample.js';
import { countExamples } from '../../database/rankings/examples.js';
import { rankingsOf } from '../../database/rankings/requests.js';
import type { Schemas } from '../schemas/all.js';
import type { Properties } from '../wire/property-names.js';

export type QueryBody = Properties<z.output<Schemas['query']['query']>>;

export function toQueryRequest({ mmr, ...query }: QueryBody): QueryRequest {
  const diversity = mmr && { lambda: mmr.lambda, candidateCount: mmr.candidates };
  return { ...query, diversity };
}

/** Each facet and each of the stats costs as much as a query by the rate limit. */
export function aggregationCost({ facets = [], stats = [] }: AggregationRequest): number {
  return facets.length + stats.length;
}

export function toSample(
  count: number | undefined,
  seed: number | undefined = 0,
): SampleRequest | undefined {
  return count === undefined ? undefined : { count, seed };
}

/** Metadata is short beside a vector: this many matches with it cost as much as one query. */
const MATCHES_PER_QUERY = 100;

/**
 * The cost of a query by the rate limit, with its facets and stats. Each example or vector of a list costs a
 * query, as does each ranking beside the first.
 */
export function costOf(query: QueryRequest, limits: Limits): number {
  const rankings = rankingsOf(query);
  const rankingCost = rankings.reduce((sum, ranking) => sum + 1 + countVectors(ranking), -1);
  const scoreCost = query.scoreStats === undefined ? 0 : 1;
  return searchCost(query, limits) + rankingCost + aggregationCost(query) + scoreCost;
}

/** Beside the one of a query by one vector. */
function countVectors(ranking: RankingRequest): number {
  return countExamples(ranking) + (ranking.multiVector?.length ?? 0);
}

/** 1, or with values the number of vectors that a page may return. */
function searchCost(query: QueryRequest, limits: Limits): number {
  const isRange = query.scoreThreshold !== undefined && query.topK === undefined;
  const pageSize = isRange ? limits.pageLimitDefault : limits.topKDefault;
  const matchCount = Math.max(1, query.limit ?? query.topK ?? pageSize) * (query.groupSize ?? 1);
  const hasValues = (query.includeValues ?? false) !== false;
  if (hasValues) return matchCount;
  return (query.includeMetadata ?? false) !== false ? Math.ceil(matchCount / MATCHES_PER_QUERY) : 1;
}
