// Finds the issues of a query that depend on neither its collection nor its cursor. Planning finds the others.

import { field, type ValidationIssue, validationError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { QueryRequest } from '../api/query-api.js';
import { findRankingIssues, hasRanking } from '../rankings/kinds.js';
import { findMisplaced, type Locate } from '../rankings/ranking.js';
import { findPageIssues } from './paging.js';
import { firstLimit } from './query-options.js';

const CHECKED = Symbol('checked');

/** A query that may have been checked. */
type MarkedQuery = QueryRequest & { readonly [CHECKED]?: true };

/** Throws the issues of a query. The returned query, and copies of it, are not checked again. */
export function checkQuery(request: MarkedQuery, limits: Limits): QueryRequest {
  if (request[CHECKED] === true) return request;
  const issues = findQueryIssues(request, limits);
  if (issues.length > 0) throw validationError(issues);
  return checkedQuery(request);
}

/** Marks a query without issues, so that it is not checked again. */
export function checkedQuery(request: QueryRequest): QueryRequest {
  const checked: { -readonly [Name in keyof MarkedQuery]: MarkedQuery[Name] } = { ...request };
  // Not in the literal, where V8 does not optimize a computed name.
  checked[CHECKED] = true;
  return checked;
}

/** The issues of a query, each at the location of its field. */
export function findQueryIssues(
  request: QueryRequest,
  limits: Limits,
  locate: Locate = field,
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const { cursor, topK, limit, sort, groupBy } = request;
  if (hasRanking(request) || cursor === undefined) {
    issues.push(...findRankingIssues(request, limits, locate));
  }
  if (request.embed !== undefined && cursor !== undefined) {
    const detail =
      'Expected embed or cursor; found both. Send the cursor alone: it has the vector.';
    issues.push({ location: locate('embed'), code: 'invalid_request', detail });
  }
  issues.push(...findPrefetchIssues(request, limits, locate));
  issues.push(...findScoringIssues(request, locate));
  issues.push(...findPageIssues(request, limits, locate));
  const { topKMax } = limits;
  const isPaged = limit !== undefined || cursor !== undefined;
  const isSorted = sort !== undefined && sort.length > 0;
  const isBounded = isSorted || groupBy !== undefined;
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
  if (isSorted && topK === undefined && cursor === undefined) {
    const detail = `Expected top_k, at most ${topKMax}, with sort, which reorders the top_k nearest vectors; found none.`;
    issues.push({ location: locate('top_k'), code: 'invalid_request', detail });
  }
  issues.push(...findGroupIssues(request, limits, locate));
  issues.push(...findDiversityIssues(request, limits, locate));
  return issues;
}

function findPrefetchIssues(
  { prefetch }: QueryRequest,
  limits: Limits,
  locate: Locate,
): ValidationIssue[] {
  if (prefetch === undefined) return [];
  return findRankingIssues(prefetch, limits, (...path) => locate('prefetch', ...path));
}

/** Members that compare vectors or summarize their scores require a ranking by vectors. */
function findScoringIssues(
  { text, sparse, fusion, diversity, scoreStats }: QueryRequest,
  locate: Locate,
): ValidationIssue[] {
  const other = text ? 'text' : sparse ? 'sparse' : fusion ? 'fusion' : null;
  if (other === null) return [];
  const members = { mmr: diversity, score_stats: scoreStats };
  return findMisplaced(members, ['mmr', 'score_stats'], other, locate);
}

function findDiversityIssues(
  { diversity, topK, sort, groupBy }: QueryRequest,
  { diversityCandidatesMax }: Limits,
  locate: Locate,
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
    const detail = `Expected at most ${candidateCount}, the number of candidates of mmr; found ${topK}.`;
    const bound = { expected: candidateCount, actual: topK };
    issues.push({ location: locate('top_k'), code: 'limit_exceeded', detail, ...bound });
  }
  return issues;
}

function findGroupIssues(request: QueryRequest, limits: Limits, locate: Locate): ValidationIssue[] {
  const { cursor, sort, groupBy, groupSize, topK = Number.POSITIVE_INFINITY } = request;
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
    const groupCount = Math.min(firstLimit(request, limits), topK);
    issues.push(...findGroupSizeIssues(groupCount, groupSize, limits, locate));
  }
  return issues;
}

/** A page of groups may have no more matches than other pages. */
export function findGroupSizeIssues(
  groupCount: number,
  groupSize = 1,
  { topKMax }: Limits,
  locate: Locate = field,
): ValidationIssue[] {
  const actual = groupCount * groupSize;
  if (actual <= topKMax) return [];
  const detail = `Expected at most ${topKMax} matches in one page; found ${groupCount} groups of ${groupSize}. Set a lower limit to read them in pages.`;
  const bound = { expected: topKMax, actual };
  return [{ location: locate('group_size'), code: 'limit_exceeded', detail, ...bound }];
}
