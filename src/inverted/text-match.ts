// Finds the rows of a segment that contain the terms of a query, and counts what BM25 needs to know about
// the segment. The counts are over all visible rows, whether or not they pass a filter.

import { type Bitmap, createBitmap, hasBit, intersectInto } from '../common/bitmap.js';
import { addRows } from './containing-rows.js';
import { findTerm, type TextRun } from './text-run.js';

/** The terms of a query. */
export interface TextTerms {
  /** Distinct byte strings in the order of their bytes. */
  readonly terms: readonly string[];
  /** Occurrences of each term in the query. */
  readonly counts: readonly number[];
  /** Whether a row must contain all terms to match; otherwise one is enough. */
  readonly needsAll: boolean;
}

/** A segment at a sequence, with its index. */
export interface TextView {
  /** In the order of their rows; together they cover 0..rowCount and maybe more. */
  readonly runs: readonly TextRun[];
  readonly rowCount: number;
  /** The visible rows; null for all. */
  readonly visible: Bitmap | null;
}

/** Counts over the visible rows of one or more segments. */
export interface TextStatistics {
  /** Rows with at least one term. */
  readonly documentCount: number;
  /** Terms in all rows, repetitions included. */
  readonly totalLength: number;
  /** The number of rows that contain each term of the query. */
  readonly containingCounts: Float64Array;
}

export function countDocuments(
  view: TextView,
): Pick<TextStatistics, 'documentCount' | 'totalLength'> {
  let documentCount = 0;
  let totalLength = 0;
  for (const run of view.runs) {
    if (view.visible === null && run.to <= view.rowCount) {
      documentCount += run.documentCount;
      totalLength += run.totalLength;
      continue;
    }
    const end = Math.min(run.to, view.rowCount);
    for (let row = run.from; row < end; row++) {
      const length = run.lengths[row - run.from]!;
      if (length === 0 || (view.visible !== null && !hasBit(view.visible, row))) continue;
      documentCount++;
      totalLength += length;
    }
  }
  return { documentCount, totalLength };
}

/** Counts the visible rows that contain each term. */
export function countContaining(view: TextView, terms: readonly string[]): Float64Array {
  return Float64Array.from(terms, (term) => {
    let count = 0;
    for (const run of view.runs) {
      const index = findTerm(run, term);
      if (index < 0) continue;
      const [start, end] = [run.postingStarts[index]!, run.postingStarts[index + 1]!];
      if (view.visible === null && run.to <= view.rowCount) {
        count += end - start;
        continue;
      }
      for (let i = start; i < end && run.rows[i]! < view.rowCount; i++) {
        if (view.visible === null || hasBit(view.visible, run.rows[i]!)) count++;
      }
    }
    return count;
  });
}

/** Returns the matching rows below `rowCount`, visible or not. The caller owns the bitmap. */
export function matchTerms(
  { runs, rowCount }: Pick<TextView, 'runs' | 'rowCount'>,
  { terms, needsAll }: Pick<TextTerms, 'terms' | 'needsAll'>,
): Bitmap {
  let matching: Bitmap | null = null;
  for (const term of terms) {
    const containing: Bitmap = needsAll || matching === null ? createBitmap(rowCount) : matching;
    for (const run of runs) addRows(containing, run, findTerm(run, term));
    if (matching !== null && needsAll) intersectInto(containing, matching);
    matching = containing;
  }
  return matching ?? createBitmap(rowCount);
}
