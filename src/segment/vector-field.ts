// The vectors of one column of a segment, which grows while the segment accepts rows. Arrays that were returned do
// not change.

import type { RowCodes, RowEncoder, VectorBatch, VectorBlock } from '../common/types.js';
import type { ColumnSpec, Named, Vector, VectorColumn } from '../common/vectors.js';
import type { WorkerPool } from '../platform/pool.js';
import type { VisibleRows } from './visibility.js';

/** A column of a segment. Codes are null for kinds that have none and without an encoder. */
export type StoredVectors = Named<VectorColumn> & { readonly codes: RowCodes | null };

/** The rows `from..from + count` of a batch. */
export interface RowsToAppend {
  readonly batch: VectorBatch;
  readonly from: number;
  readonly count: number;
}

/** The rows `from..from + count` of a batch and the row of the segment at which they start. */
export type NewRows = Omit<RowsToAppend, 'batch'> & { readonly first: number };

export interface StagedRows extends NewRows {
  /** Undefined if no row of the batch has the vector. */
  readonly column: VectorColumn | undefined;
}

export interface SegmentVectorField {
  readonly spec: ColumnSpec;
  /** Bytes of the values and indices of the rows. */
  readonly dataBytes: number;
  /** Copies the values of the rows that will be appended next, in the pool where that pays off. */
  stage(
    parts: readonly StagedRows[],
    range: { readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void>;
  /** Appends rows of a batch. The values of staged rows are already in place. */
  append(
    column: VectorColumn | undefined,
    rows: NewRows,
    options: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void;
  /** Frees memory reserved for growth. */
  seal(): void;
  /** Switches to the arrays of `stored`, which holds the same vectors as read from a file. */
  switchTo(stored: SegmentVectorField): void;
  /** Encodes the vectors in the pool, unless they have codes of this encoder. Without an encoder it drops the codes. */
  encode(encoder: RowEncoder | null): Promise<void>;
  /** Returns the visible rows that have the vector. */
  narrow(visible: VisibleRows): VisibleRows;
  /** Returns the vectors of all rows for engines; undefined for sparse vectors, which an index searches. */
  block(rest: Pick<VectorBlock, 'key' | 'ids'>): VectorBlock | undefined;
  bytesOfRows(from: number, to: number): number;
  /** Returns a view; undefined for a row without the vector. */
  vectorAt(row: number): Vector | undefined;
  /** Returns all rows appended so far. */
  column(): VectorColumn & { readonly codes: RowCodes | null };
  /** Returns the bytes of buffers other than `file`, the mapped file that columns may be in. */
  hostBytes(file: ArrayBufferLike): number;
}
