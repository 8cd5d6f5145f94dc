// A query of a body as the database takes it: what can be told of it without the collection, and
// what it costs.

import type { z } from 'zod';
import type { IssueLocation, ValidationIssue } from '../../common/errors.js';
import { leastFloat32ShownAtLeast } from '../../common/float-text.js';
import type { Limits } from '../../common/limits.js';
import type { QueryRequest } from '../../database/query/query-api.js';
import type { Schemas } from '../schemas/all.js';

export type QueryBody = z.output<Schemas['query']['query']>;

export function toQueryRequest(body: QueryBody): QueryRequest {
  return {
    vector: body.vector,
    id: body.id,
    topK: body.top_k,
    limit: body.limit,
    offset: body.offset,
    cursor: body.cursor,
    filter: body.filter,
    includeMetadata: body.include_metadata,
    includeValues: body.include_values,
    metric: body.metric,
    sort: body.sort,
    scoreThreshold: toThreshold(body.score_threshold),
    minSequence: body.min_sequence,
    explain: body.explain,
  };
}

/** What is compared with scores as they are shown. */
export function toThreshold(score: number | undefined): number | undefined {
  return score === undefined ? undefined : leastFloat32ShownAtLeast(score);
}

/** Metadata is short beside a vector: so many matches with it are worth one query. */
const MATCHES_A_QUERY = 100;

/** A query, and the vectors that it reads out, as many as the page may have. */
export function costOf(query: QueryRequest, limits: Limits): number {
  const isRange = query.scoreThreshold !== undefined && query.topK === undefined;
  const pageSize = isRange ? limits.pageLimitDefault : limits.topKDefault;
  const matchCount = Math.max(1, query.limit ?? query.topK ?? pageSize);
  const hasValues = (query.includeValues ?? false) !== false;
  if (hasValues) return matchCount;
  return query.includeMetadata === true ? Math.ceil(matchCount / MATCHES_A_QUERY) : 1;
}

/** What can be told to be wrong without the collection and without opening the cursor. */
export function findRuleBreaks(
  query: QueryRequest,
  limits: Limits,
  locate: (name: string) => IssueLocation,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const invalid = (member: string, detail: string) =>
    issues.push({ location: locate(member), code: 'invalid_request', detail });
  if (query.vector !== undefined && query.id !== undefined) {
    invalid('id', 'Expected vector or id; found both.');
  }
  if (query.vector === undefined && query.id === undefined && query.cursor === undefined) {
    invalid('vector', 'Expected vector or id; found neither.');
  }
  if (query.offset !== undefined && query.cursor !== undefined) {
    invalid('offset', 'Expected offset or cursor; found both.');
  }
  const { topKMax } = limits;
  const isPaged = query.limit !== undefined || query.cursor !== undefined;
  const isSorted = query.sort !== undefined;
  if (query.topK !== undefined && query.topK > topKMax && (isSorted || !isPaged)) {
    issues.push({
      location: locate('top_k'),
      code: 'limit_exceeded',
      detail: isSorted
        ? `A sorted query takes at most ${topKMax}; found ${query.topK}.`
        : `One page has at most ${topKMax} matches; found ${query.topK}. With limit, pages may make up more.`,
      expected: topKMax,
      actual: query.topK,
    });
  }
  return issues;
}
