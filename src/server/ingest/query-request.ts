// Queries from the wire to the database: their fields, and what they cost.

import type { z } from 'zod';
import type { Limits } from '../../common/limits.js';
import type {
  AggregationRequest,
  HistogramRequest,
} from '../../database/aggregate/aggregate-api.js';
import type { SampleRequest } from '../../database/bulk/sample.js';
import { countExamples, type ExamplesRequest } from '../../database/query/rankings/examples.js';
import type {
  Example,
  FusionRequest,
  QueryRequest,
  RankingRequest,
} from '../../database/query/query-api.js';
import { rankingsOf } from '../../database/query/rankings/requests.js';
import type { Schemas } from '../schemas/all.js';
import { readVector } from './dense-vectors.js';
import { sparseOf } from './sparse-vectors.js';

export type QueryBody = z.output<Schemas['query']['query']>;
type AggregateBody = z.output<Schemas['aggregate']['request']>;

export function toQueryRequest(body: QueryBody): QueryRequest {
  return {
    ...toRanking(body),
    fusion: toFusion(body.fusion),
    prefetch: body.prefetch && {
      ...toRanking(body.prefetch),
      fusion: toFusion(body.prefetch.fusion),
      filter: body.prefetch.filter,
      limit: body.prefetch.limit,
    },
    diversity: body.mmr && { lambda: body.mmr.lambda, candidateCount: body.mmr.candidates },
    topK: body.top_k,
    limit: body.limit,
    offset: body.offset,
    cursor: body.cursor,
    filter: body.filter,
    includeMetadata: body.include_metadata,
    includeValues: body.include_values,
    sort: body.sort,
    groupBy: body.group_by,
    groupSize: body.group_size,
    scoreThreshold: toThreshold(body.score_threshold),
    minSequence: body.min_sequence,
    ...toAggregation(body),
    scoreStats: body.score_stats && { histogram: toHistogram(body.score_stats.histogram) },
    explain: body.explain,
  };
}

type FusionBody = QueryBody['fusion'];
type RankingBody = Pick<
  QueryBody,
  | 'id'
  | 'multi_vector'
  | 'embed'
  | 'text'
  | 'sparse'
  | 'recommend'
  | 'discover'
  | 'using'
  | 'metric'
> & { readonly vector?: Float32Array | readonly number[] | string | undefined };

function toRanking(body: RankingBody): RankingRequest {
  const { id, embed, text, using, metric } = body;
  const vector = body.vector === undefined ? undefined : toVector(body.vector);
  const sparse = body.sparse && sparseOf(body.sparse);
  const multiVector = body.multi_vector?.map(toVector);
  return { vector, id, multiVector, embed, ...toExamples(body), text, sparse, using, metric };
}

/** The schema has checked vectors that are not read yet. */
function toVector(vector: NonNullable<RankingBody['vector']>): Float32Array {
  if (vector instanceof Float32Array) return vector;
  return readVector(vector, vector.length) as Float32Array;
}

function toFusion(fusion: FusionBody): FusionRequest | undefined {
  if (fusion === undefined) return undefined;
  const { kind, rank_constant, normalize, parts } = fusion;
  return {
    kind,
    rankConstant: rank_constant,
    normalize,
    parts: parts.map((part) => ({
      ...toRanking(part),
      filter: part.filter,
      limit: part.limit,
      weight: part.weight,
    })),
  };
}

function toExamples({ recommend, discover }: RankingBody): ExamplesRequest {
  return {
    recommend: recommend && {
      positive: recommend.positive.map(toExample),
      negative: recommend.negative.map(toExample),
      strategy: recommend.strategy,
      includeExamples: recommend.include_examples,
    },
    discover: discover && {
      target: discover.target && toExample(discover.target),
      context: discover.context.map(({ positive, negative }) => ({
        positive: toExample(positive),
        negative: toExample(negative),
      })),
      includeExamples: discover.include_examples,
    },
  };
}

function toExample(example: string | readonly number[]): Example {
  return typeof example === 'string' ? example : Float32Array.from(example);
}

/** The facets and stats of a query or of an aggregation. */
export function toAggregation({
  facets,
  stats,
}: Pick<AggregateBody, 'facets' | 'stats'>): AggregationRequest {
  return {
    facets: facets?.map(({ path, limit, ignore_own_filter: ignoresOwnFilter }) => ({
      path,
      limit,
      ignoresOwnFilter,
    })),
    stats: stats?.map(({ path, histogram }) => ({
      path,
      histogram: toHistogram(histogram),
    })),
  };
}

type HistogramBody = NonNullable<AggregateBody['stats']>[number]['histogram'];

function toHistogram(histogram: HistogramBody): HistogramRequest | undefined {
  if (histogram === undefined) return undefined;
  const { bucket_count, min, max } = histogram;
  return { bucketCount: bucket_count, min, max };
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

/** Rounded as scores of replies are: a match passes with its own score, from any kind of reply. */
export function toThreshold(score: number | undefined): number | undefined {
  return score === undefined ? undefined : Math.fround(score);
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
