// Filters off the event loop: the task that a worker runs, and the choice between a worker and the
// calling thread.

import type { Bitmap } from '../bitmap.js';
import type { MetadataColumn, MetadataView } from '../columns.js';
import type { Task, WorkerPool } from '../pool.js';
import type { Utf8Column } from '../types.js';
import { evaluateFilter, readsJson } from './evaluate.js';
import { type FilterNode, filterPaths, filterTests } from './filter-node.js';

/** What a filter reads of a MetadataView. */
export interface FilterInput {
  readonly node: FilterNode;
  readonly rowCount: number;
  readonly columns: readonly (readonly [path: string, column: MetadataColumn])[];
  readonly isComplete: boolean;
  /** Null when no row's JSON is read: every path has a column, or is in no row. */
  readonly json: Utf8Column | null;
}

export const evaluateFilterTask: Task<FilterInput, Bitmap> = {
  name: 'filter.evaluate',
  run: ({ node, columns, json, ...view }) =>
    evaluateFilter(node, { ...view, columns: new Map(columns), json: json ?? NO_TEXT }),
};

const NO_TEXT: Utf8Column = { offsets: new Int32Array(1), bytes: new Uint8Array(0) };

/**
 * The rows that match, of length `view.rowCount`. The caller owns the bitmap. Small filters are
 * evaluated at once, on the calling thread; the others by the pool.
 */
export async function selectRows(
  pool: WorkerPool,
  node: FilterNode,
  view: MetadataView,
  options: { signal?: AbortSignal } = {},
): Promise<Bitmap> {
  if (countCells(node, view) <= INLINE_CELLS_MAX) return evaluateFilter(node, view);
  return pool.run(evaluateFilterTask, toFilterInput(node, view), options);
}

const INLINE_CELLS_MAX = 10000;

export function toFilterInput(node: FilterNode, view: MetadataView): FilterInput {
  const columns = filterPaths(node).flatMap((path) => {
    const column = view.columns.get(path);
    return column === undefined ? [] : [[path, column] as const];
  });
  const json = readsJson(node, view) ? view.json : null;
  return { node, rowCount: view.rowCount, columns, isComplete: view.isComplete, json };
}

function countCells(node: FilterNode, view: MetadataView): number {
  return filterTests(node).length * view.rowCount;
}
