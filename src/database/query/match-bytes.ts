// Estimates the memory of the matches of a query before they are found, so that requests that would take too much
// memory together can be refused.

import type { RowSizes } from '../collection/row-sizes.js';
import type { QueryPlan } from './query-plan.js';

/** A match without text and vectors, its hit, and their entries in lists. */
const MATCH_BYTES = 256;

export function matchBytesOf(plan: QueryPlan, row: RowSizes): number {
  const count = Math.min(matchCountMax(plan), row.rowCount);
  // Without metadata only ids are read, which are short compared with MATCH_BYTES.
  const textBytes = plan.includeMetadata === false ? 0 : row.textBytes;
  const vectorBytes = plan.includeValues === false ? 0 : row.vectorBytes;
  return Math.ceil(count * (MATCH_BYTES + textBytes + vectorBytes));
}

/** The maximum number of matches that a plan holds at once. */
function matchCountMax({ sort, grouping, diversity, topK, limit }: QueryPlan): number {
  if (diversity !== null) return diversity.candidateCount;
  if (grouping !== null) return Math.min(limit, topK ?? limit) * grouping.size;
  return sort === null ? Math.min(limit, topK ?? limit) : (topK ?? limit);
}
