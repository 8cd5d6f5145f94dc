// The plan of a query: everything that decides its answer, read from the request for a first page or from the cursor
// of a later page.

import { field, validationError } from '../../common/errors.js';
import type { JsonObject } from '../../common/types.js';
import type { FilterNode } from '../../filter/filter-node.js';
import type { QueryRequest } from '../api/query-api.js';
import { mismatch, requireRepeated } from '../api/repeated.js';
import type { Collection } from '../collection/collection.js';
import { planRanking, RANKING_MEMBERS } from '../rankings/kinds.js';
import {
  findMisplaced,
  type Ranking,
  type RankingContext,
  type Scoring,
} from '../rankings/ranking.js';
import type { Hit } from '../search/hits.js';
import type { QueryCursor } from './cursor.js';
import type { Diversity } from './diversify.js';
import type { GroupingRequest } from './group-stage.js';
import { firstOptions, nextOptions, sealOptions } from './page-options.js';
import { requireReadable } from './paging.js';
import { findGroupSizeIssues } from './query-issues.js';
import { type PlannedOptions, QUERY_OPTIONS } from './query-options.js';

export interface QueryPlan extends PlannedOptions {
  readonly sequence: number;
  readonly openedAtMs: number;
  readonly ranking: Ranking;
  readonly filterNode: FilterNode | null;
  /** The number of matches or groups on previous pages. */
  readonly returnedCount: number;
  readonly offset: number;
  readonly after: { readonly score: number; readonly id: string } | null;
  /** Whether the reply contains `total`, as first pages and pages at an offset do. */
  readonly isCounted: boolean;
}

/** Groups are found again for every page, so that their number must be bounded. */
export type GroupedPlan = QueryPlan & {
  readonly grouping: GroupingRequest;
  readonly topK: number;
};

export function isGrouped(plan: QueryPlan): plan is GroupedPlan {
  return plan.grouping !== null;
}

/** Matches are chosen again for every page, from a bounded number of candidates. */
export type DiversePlan = QueryPlan & {
  readonly ranking: Ranking & { readonly scoring: Scoring };
  readonly diversity: Diversity;
  readonly topK: number;
};

export function isDiverse(plan: QueryPlan): plan is DiversePlan {
  return plan.diversity !== null;
}

export interface PlanContext extends RankingContext {
  readonly now: number;
}

/**
 * @param request a query that `checkQuery` has passed.
 * Throws `cursor_expired`, `cursor_mismatch`, and `vector_not_found` for an id without a vector.
 */
export function planQuery(
  request: QueryRequest,
  cursor: QueryCursor | null,
  context: PlanContext,
): QueryPlan {
  return cursor === null ? planFirstPage(request, context) : planNextPage(request, cursor, context);
}

function planFirstPage(request: QueryRequest, context: PlanContext): QueryPlan {
  const options = firstOptions(QUERY_OPTIONS, request, context.limits);
  const filterNode = parseFilter(options.filter, context);
  const ranking = planRanking(request, context);
  requireComparable(ranking, request);
  return {
    ...options,
    sequence: context.view.sequence,
    openedAtMs: context.now,
    ranking,
    filterNode,
    returnedCount: 0,
    offset: request.offset ?? 0,
    after: null,
    isCounted: true,
  };
}

function planNextPage(request: QueryRequest, cursor: QueryCursor, context: PlanContext): QueryPlan {
  const { view, limits } = context;
  const { sequence, openedAtMs, returnedCount, after } = cursor;
  requireReadable(cursor, view.collection, context);
  const ranking = context.unseal(cursor.ranking, []);
  requireRepeated(request, { ...RANKING_MEMBERS, ...ranking.repeats });
  const options = nextOptions(QUERY_OPTIONS, request, cursor.options);
  if ((request.minSequence ?? 0) > sequence) throw mismatch('min_sequence');
  if (options.grouping !== null) {
    const issues = findGroupSizeIssues(options.limit, options.grouping.size, limits);
    if (issues.length > 0) throw validationError(issues);
  }
  return {
    ...options,
    sequence,
    openedAtMs,
    ranking,
    filterNode: parseFilter(options.filter, context),
    returnedCount,
    offset: 0,
    after,
    isCounted: false,
  };
}

function parseFilter(
  filter: JsonObject | null,
  context: Pick<RankingContext, 'parseFilter'>,
): FilterNode | null {
  return filter && context.parseFilter(filter, ['filter']);
}

/** Throws `invalid_request` for members that require a ranking with scores by single vectors. */
function requireComparable({ scoring }: Ranking, { diversity, scoreStats }: QueryRequest): void {
  if (scoring !== null) return;
  const members = { mmr: diversity, score_stats: scoreStats };
  // `checkQuery` has refused these members for other rankings without such scores.
  const issues = findMisplaced(members, ['mmr', 'score_stats'], 'a multi-vector', field);
  if (issues.length > 0) throw validationError(issues);
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
    options: sealOptions(QUERY_OPTIONS, plan),
    ranking: plan.ranking.seal(collection),
    returnedCount: plan.returnedCount + plan.offset + count,
    after: isPositioned ? { score: last.score, id: last.view.segment.id(last.row) } : null,
  };
}
