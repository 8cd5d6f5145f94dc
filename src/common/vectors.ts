// Vectors of rows as columns of three kinds. The items of a column are its vectors, or the elements if the vectors are
// sparse. Row i of a dense column has item i; in the other kinds, row i has the items `starts[i]..starts[i + 1]`.
// Slicing, gathering and counting bytes follow from that and are the same for all kinds.

import { type Bitmap, countBits, createBitmap, hasBit, NO_ROWS, setBit } from './bitmap.js';
import { ELEMENT_TYPES, type ElementType } from './elements.js';
import { sharedBytes, sharedFloat32, sharedInt32, sharedUint32 } from './shared-array.js';

/** One vector per row. */
export interface DenseColumn {
  readonly kind: 'dense';
  readonly dimension: number;
  /** Absent for float32. */
  readonly element?: ElementType | undefined;
  /** Row-major [rowCount, dimension] float32, all finite; zeros in rows without the vector. */
  readonly values: Float32Array;
  /** [rowCount], the rows that have the vector; null if all do. */
  readonly presence: Bitmap | null;
}

/**
 * A list of vectors per row: row i has the vectors `starts[i]..starts[i + 1]`. A row with an empty list lacks the
 * vector.
 */
export interface MultiColumn {
  readonly kind: 'multi';
  readonly dimension: number;
  /** At least one more than rows; never decreasing, and not necessarily starting at 0. */
  readonly starts: Int32Array;
  /** Row-major [vectorCount, dimension] float32, all finite. */
  readonly values: Float32Array;
}

/** Sparse vectors: row i has the elements `starts[i]..starts[i + 1]`. A row without elements lacks the vector. */
export interface SparseColumn {
  readonly kind: 'sparse';
  /** At least one more than rows; never decreasing, and not necessarily starting at 0. */
  readonly starts: Int32Array;
  /** Ascending within a row. */
  readonly indices: Uint32Array;
  /** The value at each index: finite, not 0. */
  readonly values: Float32Array;
}

export type VectorColumn = DenseColumn | MultiColumn | SparseColumn;
export type VectorKind = VectorColumn['kind'];

/** A column with the name of its vectors; '' for the unnamed one. */
export type Named<Column = VectorColumn> = Column & { readonly name: string };

export type DenseSpec = Pick<DenseColumn, 'kind' | 'dimension' | 'element'>;

/** What all columns of the same vector have in common. */
export type ColumnSpec =
  | DenseSpec
  | Pick<MultiColumn, 'kind' | 'dimension'>
  | Pick<SparseColumn, 'kind'>;

/** The name of the unnamed vector. */
export const UNNAMED = '';

/** A multi-vector: the vectors, at least one, that a record has under one name. */
export interface MultiVector {
  readonly dimension: number;
  /** Row-major [vectorCount, dimension] float32. */
  readonly values: Float32Array;
}

/** A sparse vector: its nonzero elements, at least one. */
export interface SparseVector {
  /** Ascending. */
  readonly indices: Uint32Array;
  /** The value at each index: finite, not 0. */
  readonly values: Float32Array;
}

/** The vector of a row under one name. */
export type Vector = Float32Array | MultiVector | SparseVector;

/** The vector of a row in a column of this type. */
export type VectorOf<Column extends VectorColumn> = Column extends DenseColumn
  ? Float32Array
  : Column extends MultiColumn
    ? MultiVector
    : SparseVector;

/** The column type described by a spec. */
export type ColumnOf<Spec extends ColumnSpec> = Extract<
  VectorColumn,
  { readonly kind: Spec['kind'] }
>;

/** The rows from..to of a column; without a column, they lack the vector. */
export interface RowsOfColumn<Column extends VectorColumn = VectorColumn> {
  readonly column: Column | undefined;
  readonly from: number;
  readonly to: number;
}

/** Reduces a column, or anything that extends a spec, to the spec. */
export function specOf<Spec extends ColumnSpec>(
  spec: Spec,
): Extract<ColumnSpec, { readonly kind: Spec['kind'] }>;
export function specOf(spec: ColumnSpec): ColumnSpec {
  if (spec.kind === 'sparse') return { kind: spec.kind };
  const { kind, dimension } = spec;
  const element = spec.kind === 'dense' ? spec.element : undefined;
  return element === undefined || element === 'float32'
    ? { kind, dimension }
    : { kind: 'dense', dimension, element };
}

/** Describes a spec; equal specs have equal descriptions. */
export function describeSpec(spec: ColumnSpec): string {
  if (spec.kind === 'sparse') return 'sparse';
  const element = spec.kind === 'dense' ? (spec.element ?? 'float32') : 'float32';
  return `${spec.kind} ${element} of ${spec.dimension} dimensions`;
}

export function isSameSpec(left: ColumnSpec, right: ColumnSpec): boolean {
  return describeSpec(left) === describeSpec(right);
}

/** Whether this is a complete and valid spec. */
export function isSpec(found: {
  readonly kind?: string;
  readonly dimension?: number;
  readonly element?: ElementType | undefined;
}): found is ColumnSpec {
  const { kind, dimension = Number.NaN, element = 'float32' } = found;
  if (kind === 'sparse') return true;
  if (!ELEMENT_TYPES.includes(element)) return false;
  return (kind === 'dense' || kind === 'multi') && Number.isInteger(dimension) && dimension > 0;
}

/** Number of values per item. */
export function itemWidth(spec: ColumnSpec): number {
  return spec.kind === 'sparse' ? 1 : spec.dimension;
}

/** Bytes per item; an element of a sparse vector also has an index. */
export function itemBytes(spec: ColumnSpec): number {
  return spec.kind === 'sparse' ? 8 : 4 * spec.dimension;
}

/** The first item of a row. */
function itemAt(column: VectorColumn, row: number): number {
  return column.kind === 'dense' ? row : column.starts[row]!;
}

/** Bytes of the items of the rows from..to. */
export function bytesOfRows(column: VectorColumn, from: number, to: number): number {
  return (itemAt(column, to) - itemAt(column, from)) * itemBytes(column);
}

/** A view of the values in the rows from..to. */
export function valuesOfRows(column: VectorColumn, from: number, to: number): Float32Array {
  const width = itemWidth(column);
  return column.values.subarray(itemAt(column, from) * width, itemAt(column, to) * width);
}

export function hasVector(column: VectorColumn, row: number): boolean {
  if (column.kind === 'dense') return column.presence === null || hasBit(column.presence, row);
  return column.starts[row + 1]! > column.starts[row]!;
}

/** Whether any row has the vector. */
export function hasAnyVector(column: VectorColumn, rowCount: number): boolean {
  if (column.kind === 'dense') return column.presence === null || countBits(column.presence) > 0;
  return column.starts[rowCount]! > column.starts[0]!;
}

/** Returns views; undefined for a row without the vector. */
export function vectorAt<Column extends VectorColumn>(
  column: Column,
  row: number,
): VectorOf<Column> | undefined;
export function vectorAt(column: VectorColumn, row: number): Vector | undefined {
  if (!hasVector(column, row)) return undefined;
  const values = valuesOfRows(column, row, row + 1);
  if (column.kind === 'dense') return values;
  if (column.kind === 'multi') return { dimension: column.dimension, values };
  return { indices: indicesOfRows(column, row, row + 1), values };
}

function indicesOfRows({ indices, starts }: SparseColumn, from: number, to: number): Uint32Array {
  return indices.subarray(starts[from], starts[to]);
}

/** A column with a single row. */
function columnOfOne(vector: Vector): VectorColumn {
  if (vector instanceof Float32Array) {
    return { kind: 'dense', dimension: vector.length, values: vector, presence: null };
  }
  if ('indices' in vector) {
    return { kind: 'sparse', starts: Int32Array.of(0, vector.indices.length), ...vector };
  }
  const starts = Int32Array.of(0, vector.values.length / vector.dimension);
  return { kind: 'multi', starts, ...vector };
}

/** Builds a column in shared memory; undefined or null stands for a row without the vector. */
export function columnOfVectors<Spec extends ColumnSpec>(
  spec: Spec,
  vectors: readonly (Vector | null | undefined)[],
): ColumnOf<Spec> {
  const parts = vectors.map((vector) => ({
    column: vector == null ? undefined : (columnOfOne(vector) as ColumnOf<Spec>),
    from: 0,
    to: 1,
  }));
  return gatherRows(spec, parts, SHARED_MEMORY);
}

/** A view of the rows from..to; only the presence of dense vectors is copied. */
export function rowsOfColumn<Column extends VectorColumn>(
  column: Column,
  from: number,
  to: number,
): Column {
  if (column.kind !== 'dense') return { ...column, starts: column.starts.subarray(from, to + 1) };
  const presence = gatherPresence([{ column, from, to }], to - from);
  return { ...column, values: valuesOfRows(column, from, to), presence };
}

/** Allocates arrays. */
export interface Memory {
  bytes(length: number): Uint8Array;
  float32(length: number): Float32Array;
  int32(length: number): Int32Array;
  uint32(length: number): Uint32Array;
}

/** Shared memory, which other threads read without a copy. */
export const SHARED_MEMORY: Memory = {
  bytes: sharedBytes,
  float32: sharedFloat32,
  int32: sharedInt32,
  uint32: sharedUint32,
};

export const OWN_MEMORY: Memory = {
  bytes: (length) => new Uint8Array(length),
  float32: (length) => new Float32Array(length),
  int32: (length) => new Int32Array(length),
  uint32: (length) => new Uint32Array(length),
};

/** Copies the rows of all parts into one column. */
export function gatherRows<Spec extends ColumnSpec>(
  spec: Spec,
  parts: readonly RowsOfColumn<ColumnOf<Spec>>[],
  memory: Memory,
): ColumnOf<Spec>;
export function gatherRows(
  spec: ColumnSpec,
  parts: readonly RowsOfColumn[],
  memory: Memory,
): VectorColumn {
  const rowCount = parts.reduce((sum, { from, to }) => sum + to - from, 0);
  if (spec.kind === 'dense') {
    const values = gatherValues(memory.float32(rowCount * spec.dimension), parts, spec.dimension);
    return { ...specOf(spec), values, presence: gatherPresence(parts, rowCount) };
  }
  const starts = gatherStarts(memory.int32(rowCount + 1), parts);
  const itemCount = starts[rowCount]!;
  if (spec.kind === 'multi') {
    const values = gatherValues(memory.float32(itemCount * spec.dimension), parts, 0);
    return { kind: 'multi', dimension: spec.dimension, starts, values };
  }
  const indices = memory.uint32(itemCount);
  let at = 0;
  for (const { column, from, to } of parts) {
    if (column?.kind !== 'sparse') continue;
    const own = indicesOfRows(column, from, to);
    indices.set(own, at);
    at += own.length;
  }
  return {
    kind: 'sparse',
    starts,
    indices,
    values: gatherValues(memory.float32(itemCount), parts, 0),
  };
}

/** @param gap number of values to skip for a row without the vector. */
function gatherValues(
  target: Float32Array,
  parts: readonly RowsOfColumn[],
  gap: number,
): Float32Array {
  let at = 0;
  for (const { column, from, to } of parts) {
    if (column === undefined) {
      at += (to - from) * gap;
      continue;
    }
    const values = valuesOfRows(column, from, to);
    target.set(values, at);
    at += values.length;
  }
  return target;
}

/** Computes where the items of each row start in the gathered column. */
function gatherStarts(starts: Int32Array, parts: readonly RowsOfColumn[]): Int32Array {
  let row = 0;
  for (const { column, from, to } of parts) {
    if (column === undefined || column.kind === 'dense') {
      starts.fill(starts[row]!, row + 1, row + 1 + to - from);
      row += to - from;
      continue;
    }
    const shift = starts[row]! - column.starts[from]!;
    for (let i = from + 1; i <= to; i++) starts[++row] = column.starts[i]! + shift;
  }
  return starts;
}

/** Null if all rows of the parts have the vector. */
function gatherPresence(parts: readonly RowsOfColumn[], rowCount: number): Bitmap | null {
  const bits = parts.map(({ column, from, to }) => ({
    bits: column?.kind === 'dense' ? column.presence : NO_ROWS,
    from,
    to,
  }));
  if (bits.every((part) => part.bits === null)) return null;
  const presence = gatherBits(bits, rowCount);
  return countBits(presence) === rowCount ? null : presence;
}

/** Concatenates the bits from..to of the parts; null stands for all bits set. */
export function gatherBits(
  parts: readonly { readonly bits: Bitmap | null; readonly from: number; readonly to: number }[],
  length: number,
): Bitmap {
  const gathered = createBitmap(length);
  let at = 0;
  for (const { bits, from, to } of parts) {
    if (bits !== NO_ROWS) {
      for (let row = from; row < to; row++) {
        if (bits === null || hasBit(bits, row)) setBit(gathered, at + row - from);
      }
    }
    at += to - from;
  }
  return gathered;
}

/** Bytes per row, whether or not it has the vector: only dense columns have space for every row. */
export function rowBytesOf(spec: ColumnSpec): number {
  return spec.kind === 'dense' ? itemBytes(spec) : 0;
}
