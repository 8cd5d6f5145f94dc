// Aggregates segments in the worker pool or, where there is little to do, on the calling thread. A task
// has several segments; results of segments are merged by the caller.

import type { MetadataView } from '../../common/columns.js';
import { cutByWeight } from '../../common/cut-by-weight.js';
import { whenAborted } from '../../common/when-aborted.js';
import { EMPTY_COLUMN } from '../../filter/column-test.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { countEntries, type MergedValues, mergeValues } from './merge-values.js';
import { countBuckets, type NumberSummary, summarizeNumbers } from './number-summary.js';
import { type PathsInput, readColumns, selectPaths } from './path-columns.js';
import type { RowSet } from './row-set.js';
import { countValues, type ValueCounts } from './value-counts.js';

/** What is computed for each segment. */
export interface AggregateWork {
  /** Paths whose values are counted. */
  readonly values: readonly string[];
  /** Paths whose numbers are summarized. */
  readonly numbers: readonly string[];
  readonly buckets: readonly { readonly path: string; readonly bounds: Float64Array }[];
}

/** Of one segment, in the order of the work. */
export interface SegmentAggregate {
  readonly values: readonly ValueCounts[];
  readonly numbers: readonly NumberSummary[];
  /** See `countBuckets`. */
  readonly buckets: readonly Float64Array[];
}

interface AggregateInput {
  readonly work: AggregateWork;
  readonly segments: readonly PathsInput[];
  /** Shared [1] int32: not 0 when the result is no longer needed. */
  readonly stop: Int32Array;
}

/** One result per segment; those after a stop are missing. */
export const aggregateSegmentsTask: Task<AggregateInput, SegmentAggregate[]> = {
  name: 'aggregate.segments',
  run: ({ work, segments, stop }) =>
    segments.flatMap((segment) =>
      Atomics.load(stop, 0) === 0 ? [aggregateSegment(segment, work)] : [],
    ),
};

export const mergeValuesTask: Task<
  { readonly parts: readonly ValueCounts[]; readonly limit: number },
  MergedValues
> = {
  name: 'aggregate.mergeValues',
  run: ({ parts, limit }) => mergeValues(parts, limit),
};

/** The rows of a segment, and its metadata. */
export interface AggregateTarget extends RowSet {
  readonly metadata: MetadataView;
}

/**
 * The results of all targets, in order. Rejects with `overloaded`, and with the signal's reason at once
 * when it aborts; the tasks then end after the segment that they are at.
 */
export async function aggregateSegments(
  pool: WorkerPool,
  targets: readonly AggregateTarget[],
  work: AggregateWork,
  signal: AbortSignal | undefined,
): Promise<readonly SegmentAggregate[]> {
  const paths = [
    ...new Set([...work.values, ...work.numbers, ...work.buckets.map(({ path }) => path)]),
  ];
  const segments = targets.map((target) => selectPaths(target, target.metadata, paths));
  const cellCount = segments.reduce((sum, segment) => sum + countCells(segment), 0);
  if (cellCount <= INLINE_CELLS_MAX) {
    return segments.map((segment) => aggregateSegment(segment, work));
  }
  const stop = new Int32Array(new SharedArrayBuffer(4));
  const groups = cutByWeight(segments, {
    weightMax: Math.min(TASK_CELLS_MAX, Math.ceil(cellCount / pool.threadCount)),
    weightOf: countCells,
  });
  const running = groups.map((group) =>
    pool.run(aggregateSegmentsTask, { work, segments: group, stop }, { mayBeRefused: true }),
  );
  const results = await unlessAborted(Promise.all(running), signal, () =>
    Atomics.store(stop, 0, 1),
  );
  return results.flat();
}

/** As `mergeValues`, in the pool where there are many values. */
export async function mergeInPool(
  pool: WorkerPool,
  parts: readonly ValueCounts[],
  limit: number,
): Promise<MergedValues> {
  if (countEntries(parts) <= INLINE_ENTRIES_MAX) return mergeValues(parts, limit);
  return pool.run(mergeValuesTask, { parts, limit }, { mayBeRefused: true });
}

/** A segment of a scalar column takes 2 to 5 ns for a row; a message to a worker and back 50 µs. */
const INLINE_CELLS_MAX = 65_536;
/** About 40 ms: more would delay other tasks of the pool. A single segment may have more. */
const TASK_CELLS_MAX = 8_388_608;
/** Of a row whose JSON is parsed. */
const CELLS_PER_DOCUMENT = 512;
/** About 3 ms on the calling thread. */
const INLINE_ENTRIES_MAX = 20_000;

function countCells({ rowCount, columns, json }: PathsInput): number {
  const elementCount = columns.reduce(
    (sum, [, { items }]) => sum + (items?.elements.kinds.length ?? 0),
    0,
  );
  return rowCount * (columns.length + (json === null ? 0 : CELLS_PER_DOCUMENT)) + elementCount;
}

function aggregateSegment(segment: PathsInput, work: AggregateWork): SegmentAggregate {
  const columns = readColumns(segment);
  const columnOf = (path: string) => columns.get(path) ?? EMPTY_COLUMN;
  return {
    values: work.values.map((path) => countValues(columnOf(path), segment)),
    numbers: work.numbers.map((path) => summarizeNumbers(columnOf(path), segment)),
    buckets: work.buckets.map(({ path, bounds }) => countBuckets(columnOf(path), segment, bounds)),
  };
}

function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
  stop: () => void,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const ignoreAbort = whenAborted(signal, () => {
      stop();
      reject(signal!.reason);
    });
    promise.then(resolve, reject).finally(ignoreAbort);
  });
}
