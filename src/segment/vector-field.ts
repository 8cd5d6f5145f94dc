// The vectors of one name of the rows of a segment: a column that grows while the segment takes rows. What was
// handed out does not change.

import type { RowCodes, RowEncoder, VectorBatch, VectorBlock } from '../common/types.js';
import type { ColumnSpec, Named, Vector, VectorColumn } from '../common/vectors.js';
import type { WorkerPool } from '../platform/pool.js';
import type { VisibleRows } from './visibility.js';

/** A column of a segment. Columns that have no codes, because of their kind or without an encoder, have null. */
export type StoredVectors = Named<VectorColumn> & { readonly codes: RowCodes | null };

/** The rows `from..from + count` of a batch. */
export interface RowsToAppend {
  readonly batch: VectorBatch;
  readonly from: number;
  readonly count: number;
}

/** Rows of a batch that will be, or are, the ones from `first` on. */
export type NewRows = Omit<RowsToAppend, 'batch'> & { readonly first: number };

/** Rows of a batch that will be appended; undefined where none of the batch has the vector. */
export interface StagedRows extends NewRows {
  readonly column: VectorColumn | undefined;
}

export interface VectorField {
  readonly spec: ColumnSpec;
  /** Bytes of the values and indices of the rows. */
  readonly dataBytes: number;
  /** Copies the values of rows that are appended next to their places, in the pool, where that is worth it. */
  stage(
    parts: readonly StagedRows[],
    range: { readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void>;
  /** Appends rows of a batch. `isStaged`: their values are in their places. */
  append(
    column: VectorColumn | undefined,
    rows: NewRows,
    options: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void;
  /** Frees memory reserved for growth. */
  seal(): void;
  /** Continues with the arrays of `stored`, a field of the same vectors as a file has them. */
  moveTo(stored: VectorField): void;
  /** Makes the codes of this encoder, unless there are such; without an encoder it drops the codes. */
  encode(encoder: RowEncoder | null): Promise<void>;
  /** The visible rows that have the vector. */
  among(visible: VisibleRows): VisibleRows;
  /** The vectors of all rows as searches read them; undefined for sparse vectors, which have an index. */
  block(rest: Pick<VectorBlock, 'key' | 'ids'>): VectorBlock | undefined;
  bytesOfRows(from: number, to: number): number;
  /** Views; undefined for a row without the vector. */
  vectorAt(row: number): Vector | undefined;
  /** All rows that were appended. */
  column(): VectorColumn & { readonly codes: RowCodes | null };
  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(file: ArrayBufferLike): number;
}
