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
 * evaluated at once, on the calling thread, the others by the pool; `signal` stops only those.
 */
export async function selectRows(
  pool: WorkerPool,
  node: FilterNode,
  view: MetadataView,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<Bitmap> {
  if (countCells(node, view) <= INLINE_CELLS_MAX) return evaluateFilter(node, view);
  const input = toFilterInput(node, view);
  return pool.run(evaluateFilterTask, input, signal === undefined ? {} : { signal });
}

/** Only what the filter reads, since every array costs a little to send, shared or not. */
function toFilterInput(node: FilterNode, view: MetadataView): FilterInput {
  const columns = filterPaths(node).flatMap((path) => {
    const column = view.columns.get(path);
    return column === undefined ? [] : [[path, column] as const];
  });
  const json = readsJson(node, view) ? view.json : null;
  return { node, rowCount: view.rowCount, columns, isComplete: view.isComplete, json };
}

/**
 * The work that is worth a round trip to a worker, which costs 30 to 70 µs. One cell, a row of a
 * scalar column, takes 2 to 3 ns: a filter of one condition goes to a worker from 16 384 rows on.
 */
const INLINE_CELLS_MAX = 16_384;

/** What costs more than a cell, in cells: an array's element or a dictionary's string; a row's JSON. */
const CELLS_PER_STRING = 4;
const CELLS_PER_DOCUMENT = 256;

function countCells(node: FilterNode, view: MetadataView): number {
  let cells = readsJson(node, view) ? view.rowCount * CELLS_PER_DOCUMENT : 0;
  for (const { path, operand } of filterTests(node)) {
    const column = view.columns.get(path);
    if (column === undefined) continue;
    const elements = column.items?.elements;
    const stringCount =
      column.dictionaryCount +
      (elements?.kinds.length ?? 0) +
      (elements?.dictionaryCount ?? 0) +
      (Array.isArray(operand) ? operand.length : 0);
    cells += view.rowCount + stringCount * CELLS_PER_STRING;
  }
  return cells;
}
