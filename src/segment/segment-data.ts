// A segment as plain data in shared memory, for other threads, files and compaction. It is immutable
// except that `deletedSequences` may gain entries.

import type { MetadataColumn } from '../common/columns.js';
import type { Utf8Column } from '../common/types.js';
import type { StoredVectors } from './vector-field.js';

export interface SegmentIdentity {
  /** Unique in the process and never reused. */
  readonly key: string;
  /** Unique within the collection. */
  readonly number: number;
}

export interface SegmentData extends SegmentIdentity {
  readonly rowCount: number;
  /** The vectors that at least one row has, with exactly the items and codes of the rows. */
  readonly vectors: readonly StoredVectors[];
  readonly ids: Utf8Column;
  /** One JSON object per row, as sent. */
  readonly json: Utf8Column;
  /** [rowCount], ascending integers below 2^53. */
  readonly insertedSequences: Float64Array;
  /** [rowCount], Infinity for rows not deleted; null if no row is deleted. */
  readonly deletedSequences: Float64Array | null;
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** False if some paths are only in `json`. */
  readonly isComplete: boolean;
}

/** Returns the distinct buffers of ids and metadata; several views may share a buffer. */
export function textBuffers(
  data: Pick<SegmentData, 'ids' | 'json' | 'columns'>,
): Set<ArrayBufferLike> {
  const buffers = new Set<ArrayBufferLike>();
  const add = (...views: (ArrayBufferView | null | undefined)[]) => {
    for (const view of views) if (view) buffers.add(view.buffer);
  };
  const addColumn = (column: MetadataColumn) => {
    add(column.kinds, column.numbers, column.residues, column.codes);
    add(column.dictionary?.offsets, column.dictionary?.bytes, column.items?.offsets);
    if (column.items !== null) addColumn(column.items.elements);
  };
  add(data.ids.offsets, data.ids.bytes, data.json.offsets, data.json.bytes);
  for (const column of data.columns.values()) addColumn(column);
  return buffers;
}
