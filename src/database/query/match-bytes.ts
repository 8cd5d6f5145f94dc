// The memory of the matches of a query, estimated before they are found, so that requests that together
// would take too much can be refused.

import type { RowSizes } from '../collection/row-sizes.js';
import type { QueryPlan } from './query-plan.js';

/** A match with its score, the hit that it is made from, and its place in lists. */
const MATCH_BYTES = 256;

export function matchBytesOf(plan: QueryPlan, row: RowSizes): number {
  const count = Math.min(matchCountMax(plan), row.rowCount);
  // Without metadata the ids alone are read, which are short beside what every match takes.
  const textBytes = plan.includeMetadata === false ? 0 : row.textBytes;
  const vectorBytes = plan.includeValues === false ? 0 : row.vectorBytes;
  return Math.ceil(count * (MATCH_BYTES + textBytes + vectorBytes));
}

/** The most matches that a plan finds at once. */
function matchCountMax({ sort, grouping, diversity, topK, limit }: QueryPlan): number {
  if (diversity !== null) return diversity.candidateCount;
  if (grouping !== null) return Math.min(limit, topK ?? limit) * grouping.size;
  return sort === null ? Math.min(limit, topK ?? limit) : (topK ?? limit);
}
