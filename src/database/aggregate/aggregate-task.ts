// Counts and summarizes the values of segments in the worker pool. The caller merges the results of segments.

import type { RowSet } from '../../common/bitmap.js';
import { EMPTY_COLUMN } from '../../filter/column-plans.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { countEntries, type MergedValues, mergeValues } from './merge-values.js';
import { countBuckets, type NumberSummary, summarizeNumbers } from './number-summary.js';
import {
  countPathCells,
  type PathSource,
  type PathsInput,
  readColumns,
  selectPaths,
} from './path-columns.js';
import { defineSegmentsTask, runOverSegments } from './segment-tasks.js';
import { countValues, type ValueCounts } from './value-counts.js';

/** The work for each segment. */
interface AggregateWork {
  /** Paths whose values are counted. */
  readonly values: readonly string[];
  /** Paths whose numbers are summarized. */
  readonly numbers: readonly string[];
  readonly buckets: readonly { readonly path: string; readonly bounds: Float64Array }[];
}

/** The results of one segment, in the order of the work. */
interface SegmentAggregate {
  readonly values: readonly ValueCounts[];
  readonly numbers: readonly NumberSummary[];
  /** See `countBuckets`. */
  readonly buckets: readonly Float64Array[];
}

export const aggregateSegmentsTask = defineSegmentsTask({
  name: 'aggregate.segments',
  countCells: countPathCells,
  run(segment: PathsInput, work: AggregateWork): SegmentAggregate {
    const columns = readColumns(segment);
    const columnOf = (path: string) => columns.get(path) ?? EMPTY_COLUMN;
    return {
      values: work.values.map((path) => countValues(columnOf(path), segment)),
      numbers: work.numbers.map((path) => summarizeNumbers(columnOf(path), segment)),
      buckets: work.buckets.map(({ path, bounds }) =>
        countBuckets(columnOf(path), segment, bounds),
      ),
    };
  },
});

export const mergeValuesTask: Task<
  { readonly parts: readonly ValueCounts[]; readonly limit: number },
  MergedValues
> = {
  name: 'aggregate.mergeValues',
  run: ({ parts, limit }) => mergeValues(parts, limit),
};

/** The rows of a segment, and its metadata. */
export interface AggregateTarget extends RowSet {
  readonly metadata: PathSource;
}

/** The results of all targets, in order. Rejects like `runOverSegments`. */
export function aggregateSegments(
  pool: WorkerPool,
  targets: readonly AggregateTarget[],
  work: AggregateWork,
  signal: AbortSignal | undefined,
): Promise<readonly SegmentAggregate[]> {
  const paths = [...work.values, ...work.numbers, ...work.buckets.map(({ path }) => path)];
  const segments = targets.map((target) =>
    selectPaths(target, target.metadata, [...new Set(paths)]),
  );
  return runOverSegments(pool, aggregateSegmentsTask, segments, work, signal);
}

/** Merges like `mergeValues`, in the pool if there are many values. */
export async function mergeInPool(
  pool: WorkerPool,
  parts: readonly ValueCounts[],
  limit: number,
): Promise<MergedValues> {
  if (countEntries(parts) <= INLINE_ENTRIES_MAX) return mergeValues(parts, limit);
  return pool.run(mergeValuesTask, { parts, limit }, { mayBeRefused: true });
}

/** Up to this many entries are merged on the calling thread, in about 3 ms. */
const INLINE_ENTRIES_MAX = 20_000;
