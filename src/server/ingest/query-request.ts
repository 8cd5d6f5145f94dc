// Converts queries of the API to requests of the database, and computes their cost.

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

export function toQueryRequest(body: QueryBody): QueryRequest {
  if (body.mmr === undefined) return body;
  const { mmr, ...query } = body;
  const diversity = mmr && { lambda: mmr.lambda, candidateCount: mmr.candidates };
  return { ...query, diversity };
}

/** Each facet and each of the stats costs as much as a query. */
export function aggregationCost({ facets = [], stats = [] }: AggregationRequest): number {
  return facets.length + stats.length;
}

export function toSample(
  count: number | undefined,
  seed: number | undefined = 0,
): SampleRequest | undefined {
  return count === undefined ? undefined : { count, seed };
}

/** Metadata is short compared with a vector: this many matches with metadata cost as much as one query. */
const MATCHES_PER_QUERY = 100;

/**
 * The cost of a query for the rate limit, including facets and stats. Each example, each vector of a list and each
 * additional ranking costs as much as a query.
 */
export function costOf(query: QueryRequest, limits: Limits): number {
  const rankings = rankingsOf(query);
  const rankingCost = rankings.reduce((sum, ranking) => sum + 1 + countVectors(ranking), -1);
  const scoreCost = query.scoreStats === undefined ? 0 : 1;
  return searchCost(query, limits) + rankingCost + aggregationCost(query) + scoreCost;
}

/** Vectors in addition to the single one of a simple query. */
function countVectors(ranking: RankingRequest): number {
  return countExamples(ranking) + (ranking.multiVector?.length ?? 0);
}

/** 1, or the number of vectors that a page may return if their values are included. */
function searchCost(query: QueryRequest, limits: Limits): number {
  const isRange = query.scoreThreshold !== undefined && query.topK === undefined;
  const pageSize = isRange ? limits.pageLimitDefault : limits.topKDefault;
  const matchCount = Math.max(1, query.limit ?? query.topK ?? pageSize) * (query.groupSize ?? 1);
  const hasValues = (query.includeValues ?? false) !== false;
  if (hasValues) return matchCount;
  return (query.includeMetadata ?? false) !== false ? Math.ceil(matchCount / MATCHES_PER_QUERY) : 1;
}
