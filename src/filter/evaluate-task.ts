// Evaluates filters in the worker pool or, if they are cheap, on the calling thread. The views of one call share
// tasks, because a message to a worker costs more than many views.

import type { Bitmap } from '../common/bitmap.js';
import type { MetadataColumn, MetadataView } from '../common/columns.js';
import { ID_PATH } from '../common/filter-operators.js';
import type { Utf8Column } from '../common/types.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { countCells } from './cost.js';
import { evaluateFilter, readsJson } from './evaluate.js';
import { type FilterNode, filterPaths, filterTests } from './filter-node.js';

/** The input of one task: a filter and what it reads from some views. */
export interface FilterInput {
  readonly node: FilterNode;
  readonly views: readonly ViewInput[];
}

interface ViewInput {
  readonly rowCount: number;
  readonly columns: readonly (readonly [path: string, column: MetadataColumn])[];
  readonly isComplete: boolean;
  /** Null if the filter has no condition on ids. */
  readonly ids: Utf8Column | null;
  /** Null if the filter reads no JSON, because every path has a column or occurs in no row. */
  readonly json: Utf8Column | null;
  /** Shared [1] int32: not 0 once the evaluation of this view is cancelled. */
  readonly stop: Int32Array;
}

/** One bitmap per view; null for views whose evaluation was stopped. */
export const evaluateFilterTask: Task<FilterInput, (Bitmap | null)[]> = {
  name: 'filter.evaluate',
  run: ({ node, views }) =>
    views.map(({ columns, ids, json, stop, ...view }) => {
      const isStopped = () => Atomics.load(stop, 0) !== 0;
      const rows = evaluateFilter(
        node,
        { ...view, columns: new Map(columns), ids: ids ?? NO_TEXT, json: json ?? NO_TEXT },
        isStopped,
      );
      return isStopped() ? null : rows;
    }),
};

const NO_TEXT: Utf8Column = { offsets: new Int32Array(1), bytes: new Uint8Array(0) };

/** The evaluation of a filter over one view. */
export interface FilterEvaluation {
  /** The matching rows, of length `view.rowCount`; null after `stop`. The caller owns the bitmap. */
  readonly rows: Promise<Bitmap | null>;
  /**
   * Cancels the evaluation, which ends after the current condition or row of JSON. Aborting the task instead would
   * end the worker thread that runs it.
   */
  stop(): void;
}

/**
 * Evaluates the filter over each view: at once on the calling thread if that is cheap, otherwise in as few tasks as
 * keep the threads of the pool busy.
 */
export function selectRows(
  pool: WorkerPool,
  node: FilterNode,
  views: readonly MetadataView[],
): FilterEvaluation[] {
  const cells = views.map((view) => countCells(node, view));
  const cellCount = cells.reduce((sum, count) => sum + count, 0);
  if (cellCount <= INLINE_CELLS_MAX) return views.map((view) => selectInline(node, view));
  const selections: FilterEvaluation[] = [];
  for (const indexes of spread(cells, taskCountFor(cellCount, pool.threadCount))) {
    const inputs = indexes.map((index) => toViewInput(node, views[index]));
    const outputs = pool.run(evaluateFilterTask, { node, views: inputs }, { mayBeRefused: true });
    indexes.forEach((index, i) => {
      selections[index] = {
        rows: outputs.then((bitmaps) => bitmaps[i]),
        stop: () => Atomics.store(inputs[i].stop, 0, 1),
      };
    });
  }
  return selections;
}

function selectInline(node: FilterNode, view: MetadataView): FilterEvaluation {
  // The promise delivers errors to the caller in the same way as the pool does.
  const rows = new Promise<Bitmap>((resolve) => resolve(evaluateFilter(node, view)));
  return { rows, stop() {} };
}

/** Selects only what the filter reads, because sending an array has a cost even if it is shared. */
function toViewInput(node: FilterNode, view: MetadataView): ViewInput {
  const columns = filterPaths(node).flatMap((path) => {
    const column = view.columns.get(path);
    return column === undefined ? [] : [[path, column] as const];
  });
  const ids = filterTests(node).some(({ path }) => path === ID_PATH) ? view.ids : null;
  const json = readsJson(node, view) ? view.json : null;
  const stop = new Int32Array(new SharedArrayBuffer(4));
  return { rowCount: view.rowCount, columns, isComplete: view.isComplete, ids, json, stop };
}

/**
 * About 150 µs of work. One cell, a row of a scalar column, takes 1 to 2 ns; a message to a worker and
 * back takes 50 µs on the calling thread and has a latency of 300 µs.
 */
const INLINE_CELLS_MAX = 131_072;

/** A task with fewer cells is not worth its message. */
const TASK_CELLS_MIN = 65_536;
/** About 20 ms, since longer tasks would delay others in the pool. A single view may exceed it. */
const TASK_CELLS_MAX = 16_777_216;

function taskCountFor(cellCount: number, threadCount: number): number {
  const worthwhile = Math.min(threadCount, Math.ceil(cellCount / TASK_CELLS_MIN));
  return Math.max(worthwhile, Math.ceil(cellCount / TASK_CELLS_MAX));
}

/** Groups the indexes of `cells` so that the sums of groups are similar. No group is empty. */
function spread(cells: readonly number[], groupCount: number): number[][] {
  const groups = Array.from({ length: Math.min(groupCount, cells.length) }, () => ({
    indexes: [] as number[],
    cellCount: 0,
  }));
  cells.forEach((count, index) => {
    const group = groups.reduce((least, other) =>
      other.cellCount < least.cellCount ? other : least,
    );
    group.indexes.push(index);
    group.cellCount += count;
  });
  return groups.map(({ indexes }) => indexes).filter(({ length }) => length > 0);
}
