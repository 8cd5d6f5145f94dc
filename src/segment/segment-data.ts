// A segment as plain data over shared memory, for other threads, files and compaction. It is immutable
// except that `deletedSequences` may gain entries.

import type { MetadataColumn } from '../common/columns.js';
import type { RowCodes, Utf8Column } from '../common/types.js';

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
  /** One JSON object per row, as sent. */
  readonly json: Utf8Column;
  /** [rowCount], ascending integers below 2^53. */
  readonly insertedSequences: Float64Array;
  /** [rowCount], Infinity for rows not deleted; null when there are no deletions. */
  readonly deletedSequences: Float64Array | null;
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** Arrays of exactly the codes of the rows; null without codes. */
  readonly codes: RowCodes | null;
  /** False when some paths are in `json` only. */
  readonly isComplete: boolean;
}

/** The distinct buffers of the rows, without codes and visibility: several views may share a buffer. */
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
