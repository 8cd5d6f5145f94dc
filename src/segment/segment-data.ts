// A segment as plain data over shared memory: what crosses threads, becomes a file, comes from one,
// and goes into a compaction. Nobody changes it, except that `deletedSequences` may gain entries.

import type { MetadataColumn } from '../common/columns.js';
import type { Utf8Column } from '../common/types.js';

export interface SegmentIdentity {
  /** Unique in the process and never reused. */
  readonly key: string;
  /** Unique within the collection. */
  readonly number: number;
}

export interface SegmentData extends SegmentIdentity {
  readonly dimension: number;
  readonly rowCount: number;
  /** Row-major [rowCount, dimension] float32. */
  readonly values: Float32Array;
  readonly ids: Utf8Column;
  /** One JSON object a row, as sent. */
  readonly json: Utf8Column;
  /** [rowCount], ascending integers below 2^53. */
  readonly insertedSequences: Float64Array;
  /** [rowCount], Infinity where a row lives; null when all do. */
  readonly deletedSequences: Float64Array | null;
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** False when some paths are only in `json`. */
  readonly isComplete: boolean;
}

/** The buffers behind the rows, each once: several views may share one. Visibility is counted apart. */
export function sharedBuffers(data: SegmentData): Set<ArrayBufferLike> {
  const buffers = new Set<ArrayBufferLike>();
  const add = (...views: (ArrayBufferView | null | undefined)[]) => {
    for (const view of views) if (view) buffers.add(view.buffer);
  };
  const addColumn = (column: MetadataColumn) => {
    add(column.kinds, column.numbers, column.codes);
    add(column.dictionary?.offsets, column.dictionary?.bytes, column.items?.offsets);
    if (column.items !== null) addColumn(column.items.elements);
  };
  add(data.values);
  add(data.ids.offsets, data.ids.bytes, data.json.offsets, data.json.bytes);
  for (const column of data.columns.values()) addColumn(column);
  return buffers;
}
