// The vectors of one name of the rows of a segment: a column that grows while the segment takes rows. What was
// handed out does not change. A field of each kind is made here and nowhere else.

import type { RowCodes, RowEncoder } from '../common/types.js';
import {
  type ColumnSpec,
  itemBytes,
  type Named,
  type Vector,
  type VectorColumn,
} from '../common/vectors.js';
import type { WorkerPool } from '../platform/pool.js';
import { DenseField } from './dense-field.js';
import { ListField } from './list-field.js';
import type { VisibleRows } from './visibility.js';

/** A column of a segment. Columns that have no codes, because of their kind or without an encoder, have null. */
export type StoredVectors = Named<VectorColumn> & { readonly codes: RowCodes | null };

/** New rows of a batch. */
export interface NewRows {
  /** The first of them in the batch. */
  readonly from: number;
  readonly count: number;
  /** The number of the first of them in the segment. */
  readonly first: number;
}

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
  bytesOfRows(from: number, to: number): number;
  /** Views; undefined for a row without the vector. */
  vectorAt(row: number): Vector | undefined;
  /** All rows that were appended. */
  column(): VectorColumn & { readonly codes: RowCodes | null };
  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(file: ArrayBufferLike): number;
}

/** A field that the first `rowCount` rows lack. */
export function createField(
  spec: ColumnSpec,
  rowCount: number,
  encoder: RowEncoder | null,
): VectorField {
  return spec.kind === 'dense'
    ? DenseField.create(spec.dimension, rowCount, encoder)
    : ListField.create(spec, rowCount);
}

/** A sealed field over the arrays of a column of `rowCount` rows. */
export function fieldOfColumn(column: StoredVectors, rowCount: number): VectorField {
  return column.kind === 'dense'
    ? DenseField.fromColumn(column, rowCount)
    : new ListField(column, rowCount);
}

/** Bytes that each row takes, whether it has the vector or not: only dense columns have a place for every row. */
export function rowBytesOf(spec: ColumnSpec): number {
  return spec.kind === 'dense' ? itemBytes(spec) : 0;
}
