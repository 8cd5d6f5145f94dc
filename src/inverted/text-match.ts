// Finds the rows of a segment that contain the terms of a query, and counts what BM25 needs to know of
// the segment: of all rows that are visible, whether or not they pass a filter.

import { type Bitmap, createBitmap, hasBit, intersectInto } from '../common/bitmap.js';
import { addRows } from './containing-rows.js';
import { findTerm, type TextPart } from './text-part.js';

/** The terms of a query. */
export interface TextTerms {
  /** Distinct byte strings in the order of their bytes. */
  readonly terms: readonly string[];
  /** How often the query has each of them. */
  readonly counts: readonly number[];
  /** Whether a row must contain all of them; else any. */
  readonly needsAll: boolean;
}

/** A segment at a sequence, and its index. */
export interface TextView {
  /** In the order of their rows; together they cover 0..rowCount, and maybe more. */
  readonly parts: readonly TextPart[];
  readonly rowCount: number;
  /** The visible rows; null for all. */
  readonly visible: Bitmap | null;
}

/** Of the visible rows of a segment, or of several. */
export interface TextStatistics {
  /** Rows with any term. */
  readonly documentCount: number;
  /** Terms of all rows, repetitions included. */
  readonly totalLength: number;
  /** The number of rows that contain each term of the query. */
  readonly containingCounts: Float64Array;
}

export function countDocuments(
  view: TextView,
): Pick<TextStatistics, 'documentCount' | 'totalLength'> {
  let documentCount = 0;
  let totalLength = 0;
  for (const part of view.parts) {
    if (view.visible === null && part.to <= view.rowCount) {
      documentCount += part.documentCount;
      totalLength += part.totalLength;
      continue;
    }
    const end = Math.min(part.to, view.rowCount);
    for (let row = part.from; row < end; row++) {
      const length = part.lengths[row - part.from]!;
      if (length === 0 || (view.visible !== null && !hasBit(view.visible, row))) continue;
      documentCount++;
      totalLength += length;
    }
  }
  return { documentCount, totalLength };
}

/** The number of visible rows that contain each term. */
export function countContaining(view: TextView, terms: readonly string[]): Float64Array {
  return Float64Array.from(terms, (term) => {
    let count = 0;
    for (const part of view.parts) {
      const index = findTerm(part, term);
      if (index < 0) continue;
      const [start, end] = [part.postingStarts[index]!, part.postingStarts[index + 1]!];
      if (view.visible === null && part.to <= view.rowCount) {
        count += end - start;
        continue;
      }
      for (let i = start; i < end && part.rows[i]! < view.rowCount; i++) {
        if (view.visible === null || hasBit(view.visible, part.rows[i]!)) count++;
      }
    }
    return count;
  });
}

/** The rows that match, visible or not; at most 0..rowCount. The caller owns the bitmap. */
export function matchTerms(
  { parts, rowCount }: Pick<TextView, 'parts' | 'rowCount'>,
  { terms, needsAll }: Pick<TextTerms, 'terms' | 'needsAll'>,
): Bitmap {
  let matching: Bitmap | null = null;
  for (const term of terms) {
    const containing: Bitmap = needsAll || matching === null ? createBitmap(rowCount) : matching;
    for (const part of parts) addRows(containing, part, findTerm(part, term));
    if (matching !== null && needsAll) intersectInto(containing, matching);
    matching = containing;
  }
  return matching ?? createBitmap(rowCount);
}
