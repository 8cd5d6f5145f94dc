// Runs a function over segments in the worker pool or, for little work, on the calling thread. A task processes several
// segments; results are in the order of the segments.

import { cutByWeight } from '../../common/cut-by-weight.js';
import { unlessAborted } from '../../common/when-aborted.js';
import type { Task, WorkerPool } from '../../platform/pool.js';

interface SegmentsInput<Segment, Work> {
  readonly work: Work;
  readonly segments: readonly Segment[];
  /** Shared [1] int32, set to 1 when the results are no longer needed. */
  readonly stop: Int32Array;
}

/** Returns one result per segment; results after a stop are missing. */
export interface SegmentsTask<Segment, Work, Result>
  extends Task<SegmentsInput<Segment, Work>, Result[]> {
  /** The work for a segment in cells. A cell is a row of a scalar column and takes 2 to 5 ns. */
  countCells(segment: Segment): number;
}

export function defineSegmentsTask<Segment, Work, Result>(definition: {
  readonly name: string;
  countCells(segment: Segment): number;
  run(segment: Segment, work: Work): Result;
}): SegmentsTask<Segment, Work, Result> {
  return {
    name: definition.name,
    countCells: definition.countCells,
    run: ({ work, segments, stop }) =>
      segments.flatMap((segment) =>
        Atomics.load(stop, 0) === 0 ? [definition.run(segment, work)] : [],
      ),
  };
}

/**
 * The results of all segments, in order. Rejects with `overloaded`, and with the signal's reason as soon as it aborts;
 * tasks then end after their current segment.
 */
export async function runOverSegments<Segment, Work, Result>(
  pool: WorkerPool,
  task: SegmentsTask<Segment, Work, Result>,
  segments: readonly Segment[],
  work: Work,
  signal: AbortSignal | undefined,
): Promise<readonly Result[]> {
  const stop = new Int32Array(new SharedArrayBuffer(4));
  const cellCount = segments.reduce((sum, segment) => sum + task.countCells(segment), 0);
  if (cellCount <= INLINE_CELLS_MAX) return task.run({ work, segments, stop });
  const groups = cutByWeight(segments, {
    weightMax: Math.min(TASK_CELLS_MAX, Math.ceil(cellCount / pool.threadCount)),
    weightOf: task.countCells,
  });
  const running = groups.map((group) =>
    pool.run(task, { work, segments: group, stop }, { mayBeRefused: true }),
  );
  const results = await unlessAborted(Promise.all(running), signal, () =>
    Atomics.store(stop, 0, 1),
  );
  return results.flat();
}

/** Up to this much work, about 200 µs, is done on the calling thread; a message to a worker and back takes 50 µs. */
const INLINE_CELLS_MAX = 65_536;
/** About 40 ms; longer tasks would delay other tasks of the pool. A single segment may take longer. */
const TASK_CELLS_MAX = 8_388_608;
