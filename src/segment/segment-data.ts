// A segment as plain data over shared memory, for other threads, files and compaction. It is immutable
// except that `deletedSequences` may gain entries.

import type { Bitmap } from '../common/bitmap.js';
import type { MetadataColumn } from '../common/columns.js';
import type { NamedMulti, NamedSparse, RowCodes, Utf8Column } from '../common/types.js';

export interface SegmentIdentity {
  /** Unique in the process and never reused. */
  readonly key: string;
  /** Unique within the collection. */
  readonly number: number;
}

/** A vector of every row. */
export interface VectorColumn {
  /** 0, and no values, for the unnamed vector of a collection without it. */
  readonly dimension: number;
  /** Row-major [rowCount, dimension] float32. */
  readonly values: Float32Array;
  /** Arrays of exactly the codes of the rows; null without codes. */
  readonly codes: RowCodes | null;
}

/** A vector that rows may lack; these have zeros. */
export interface NamedColumn extends VectorColumn {
  readonly name: string;
  /** [rowCount], the rows that have it. */
  readonly presence: Bitmap;
}

/** Its own vector column is the unnamed vector. */
export interface SegmentData extends SegmentIdentity, VectorColumn {
  readonly rowCount: number;
  /** In the order of the collection's definition. */
  readonly named: readonly NamedColumn[];
  /** The same for sparse vectors; exactly the elements of the rows. */
  readonly sparse: readonly NamedSparse[];
  /** The same for multi-vectors; exactly the vectors of the rows. */
  readonly multi: readonly NamedMulti[];
  readonly ids: Utf8Column;
  /** One JSON object per row, as sent. */
  readonly json: Utf8Column;
  /** [rowCount], ascending integers below 2^53. */
  readonly insertedSequences: Float64Array;
  /** [rowCount], Infinity for rows not deleted; null when there are no deletions. */
  readonly deletedSequences: Float64Array | null;
  readonly columns: ReadonlyMap<string, MetadataColumn>;
  /** False when some paths are in `json` only. */
  readonly isComplete: boolean;
}

/** The distinct buffers of ids and metadata: several views may share a buffer. */
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
