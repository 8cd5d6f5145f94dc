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
  /** Null when every path has a column or is in no row. */
  readonly json: Utf8Column | null;
}

export const evaluateFilterTask: Task<FilterInput, Bitmap> = {
  name: 'filter.evaluate',
  run: ({ node, rowCount, columns, isComplete, json }) =>
    evaluateFilter(node, {
      rowCount,
      columns: new Map(columns),
      isComplete,
      json: json ?? NO_TEXT,
    }),
};

const NO_TEXT: Utf8Column = { offsets: new Int32Array(1), bytes: new Uint8Array(0) };
