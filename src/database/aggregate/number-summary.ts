// Summaries of the numbers of a column: count, range, exact sum and bucket counts. Summaries of segments can be added,
// and the result does not depend on how rows are divided into segments.

import type { RowSet } from '../../common/bitmap.js';
import type { MetadataColumn } from '../../common/columns.js';
import { float64AtMost } from '../../common/exact-json.js';
import type { JsonNumber } from '../../common/types.js';
import type { Histogram, HistogramRequest, Stats } from '../api/aggregate-api.js';
import { ExactSum, exactTotal, quotientOf } from './exact-sum.js';
import { visitNumbers } from './row-set.js';

export interface NumberSummary {
  readonly count: number;
  /** Rows with a number. */
  readonly rowCount: number;
  /** Infinity without a number. */
  readonly min: JsonNumber;
  /** −Infinity without a number. */
  readonly max: JsonNumber;
  /** In units of 2^-1074. */
  readonly total: bigint;
}

export const EMPTY_SUMMARY: NumberSummary = {
  count: 0,
  rowCount: 0,
  min: Number.POSITIVE_INFINITY,
  max: Number.NEGATIVE_INFINITY,
  total: 0n,
};

export function summarizeNumbers(column: MetadataColumn, rows: RowSet): NumberSummary {
  if (column.numbers === null && column.items === null) return EMPTY_SUMMARY;
  const sum = new ExactSum();
  let { count, min, max } = EMPTY_SUMMARY;
  const rowCount = visitNumbers(column, rows, (value) => {
    count++;
    if (value < min) min = value;
    if (value > max) max = value;
    sum.add(value);
  });
  return { count, rowCount, min, max, total: sum.total };
}

export function addSummaries(a: NumberSummary, b: NumberSummary): NumberSummary {
  return {
    count: a.count + b.count,
    rowCount: a.rowCount + b.rowCount,
    min: lesser(a.min, b.min),
    max: greater(a.max, b.max),
    total: a.total + b.total,
  };
}

export function lesser(a: JsonNumber, b: JsonNumber): JsonNumber {
  return a < b ? a : b;
}

export function greater(a: JsonNumber, b: JsonNumber): JsonNumber {
  return a > b ? a : b;
}

/** @param rowCount the number of all rows, with and without a number. */
export function toStats(path: string, summary: NumberSummary, rowCount: number): Stats {
  const { count, min, max, total } = summary;
  const missingCount = rowCount - summary.rowCount;
  if (count === 0) return { path, count, missingCount };
  return {
    path,
    count,
    missingCount,
    min,
    max,
    sum: exactTotal(total),
    mean: quotientOf(total, count),
  };
}

/** The ascending bounds of the buckets, [bucket count + 1]; a single bucket if both ends are equal. */
export function bucketBounds(
  { bucketCount, min, max }: HistogramRequest,
  summary: NumberSummary,
): Float64Array {
  const least = float64AtMost(summary.min);
  const greatest = -float64AtMost(-summary.max);
  const first = min ?? Math.min(least, max ?? least);
  const last = max ?? Math.max(greatest, first);
  if (first === last) return Float64Array.of(first, last);
  // Interpolates between the ends, because a width would overflow for numbers far apart.
  return Float64Array.from({ length: bucketCount + 1 }, (_, i) =>
    i === bucketCount ? last : first * (1 - i / bucketCount) + last * (i / bucketCount),
  );
}

/** Counts numbers below the first bound, in each bucket, and above the last bound: [bucket count + 2]. */
export function countBuckets(
  column: MetadataColumn,
  rows: RowSet,
  bounds: Float64Array,
): Float64Array {
  const counts = new Float64Array(bounds.length + 1);
  const last = bounds.length - 1;
  visitNumbers(column, rows, (value) => {
    if (value > bounds[last]!) counts[last + 1]!++;
    else if (value < bounds[0]!) counts[0]!++;
    else counts[1 + bucketOf(value, bounds)]!++;
  });
  return counts;
}

export function toHistogram(bounds: Float64Array, counts: Float64Array): Histogram {
  const buckets = Array.from({ length: bounds.length - 1 }, (_, i) => ({
    from: bounds[i]!,
    to: bounds[i + 1]!,
    count: counts[i + 1]!,
  }));
  return { buckets, belowCount: counts[0]!, aboveCount: counts.at(-1)! };
}

/** The bucket of a number between the bounds; the last bound belongs to the last bucket. */
function bucketOf(value: JsonNumber, bounds: Float64Array): number {
  let from = 0;
  let to = bounds.length - 2;
  while (from < to) {
    const middle = (from + to + 1) >>> 1;
    if (bounds[middle]! <= value) from = middle;
    else to = middle - 1;
  }
  return from;
}
