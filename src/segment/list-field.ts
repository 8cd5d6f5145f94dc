// The multi-vectors or sparse vectors of one name in a segment: the items of all rows in sequence. A row without the
// vector has no items. There are no codes, because MaxSim and the search of sparse vectors read values.

import { type Bitmap, createBitmap, setBit } from '../common/bitmap.js';
import { sharedFloat32, sharedInt32, sharedUint32 } from '../common/shared-array.js';
import type { VectorBlock } from '../common/types.js';
import {
  type ColumnSpec,
  hasVector,
  itemBytes,
  itemWidth,
  type MultiColumn,
  type MultiVector,
  type SparseColumn,
  type SparseVector,
  type VectorColumn,
  valuesOfRows,
  vectorAt,
} from '../common/vectors.js';
import { trimmed, withRoom } from './shared-arrays.js';
import type { NewRows, SegmentVectorField } from './vector-field.js';
import { type VisibleRows, visibleAmong } from './visibility.js';

type ListColumn = MultiColumn | SparseColumn;
type ListSpec = Exclude<ColumnSpec, { readonly kind: 'dense' }>;

export class ListField implements SegmentVectorField {
  readonly spec: ListSpec;
  /** Row i holds the items `starts[i]..starts[i + 1]`. All arrays have room for more. */
  #starts: Int32Array;
  #values: Float32Array;
  /** Null for multi-vectors. */
  #indices: Uint32Array | null;
  #rowCount: number;
  /** The rows that have the vector; computed when a search needs it. */
  #presence: Bitmap | null = null;

  /** Creates a field whose first `rowCount` rows lack the vector. */
  static create(spec: ListSpec, rowCount: number): ListField {
    const column = { ...spec, starts: sharedInt32(rowCount + 1), values: sharedFloat32(0) };
    const indices = sharedUint32(0);
    return new ListField(column.kind === 'sparse' ? { ...column, indices } : column, rowCount);
  }

  /** @param column has shared arrays, and its first item is item 0. */
  constructor(column: ListColumn, rowCount: number) {
    this.spec =
      column.kind === 'sparse'
        ? { kind: 'sparse' }
        : { kind: 'multi', dimension: column.dimension };
    this.#starts = column.starts;
    this.#values = column.values;
    this.#indices = column.kind === 'sparse' ? column.indices : null;
    this.#rowCount = rowCount;
  }

  get dataBytes(): number {
    return this.bytesOfRows(0, this.#rowCount);
  }

  bytesOfRows(from: number, to: number): number {
    return (this.#starts[to]! - this.#starts[from]!) * itemBytes(this.spec);
  }

  get #itemCount(): number {
    return this.#starts[this.#rowCount]!;
  }

  /** Does nothing: where a list goes is not known before it is appended. */
  stage(): Promise<void> {
    return Promise.resolve();
  }

  append(added: VectorColumn | undefined, { from, count, first }: NewRows): void {
    const rowCount = first + count;
    const end = this.#itemCount;
    this.#starts = withRoom(this.#starts, rowCount + 1);
    // Rows between the known ones and the new ones were appended before any row had the vector.
    this.#starts.fill(end, this.#rowCount + 1, rowCount + 1);
    if (added !== undefined && added.kind !== 'dense') {
      this.#appendItems(added, from, from + count);
      const shift = end - added.starts[from]!;
      for (let i = 1; i <= count; i++) this.#starts[first + i] = added.starts[from + i]! + shift;
    }
    this.#rowCount = rowCount;
  }

  #appendItems(added: ListColumn, from: number, to: number): void {
    const at = this.#itemCount;
    const width = itemWidth(this.spec);
    const values = valuesOfRows(added, from, to);
    this.#values = withRoom(this.#values, at * width + values.length);
    this.#values.set(values, at * width);
    if (added.kind !== 'sparse') return;
    const indices = added.indices.subarray(added.starts[from], added.starts[to]);
    this.#indices = withRoom(this.#indices!, at + indices.length);
    this.#indices.set(indices, at);
  }

  seal(): void {
    const itemCount = this.#itemCount;
    this.#values = trimmed(this.#values, itemCount * itemWidth(this.spec));
    if (this.#indices !== null) this.#indices = trimmed(this.#indices, itemCount);
    this.#starts = trimmed(this.#starts, this.#rowCount + 1);
  }

  switchTo(stored: ListField): void {
    this.#starts = stored.#starts;
    this.#values = stored.#values;
    this.#indices = stored.#indices;
  }

  encode(): Promise<void> {
    return Promise.resolve();
  }

  narrow(visible: VisibleRows): VisibleRows {
    return visibleAmong(visible, this.#presentRows());
  }

  /** Returns the rows that have the vector; the same object until rows are appended. */
  #presentRows(): Bitmap {
    if (this.#presence?.length === this.#rowCount) return this.#presence;
    const column = this.column();
    const rows = createBitmap(this.#rowCount);
    for (let row = 0; row < this.#rowCount; row++) if (hasVector(column, row)) setBit(rows, row);
    this.#presence = rows;
    return rows;
  }

  block(rest: Pick<VectorBlock, 'key' | 'ids'>): VectorBlock | undefined {
    const column = this.column();
    if (column.kind === 'sparse') return undefined;
    const { dimension, values, starts, codes } = column;
    return { ...rest, rowCount: this.#rowCount, dimension, values, starts, codes };
  }

  vectorAt(row: number): MultiVector | SparseVector | undefined {
    return vectorAt<ListColumn>(this.column(), row);
  }

  column(): ListColumn & { readonly codes: null } {
    const itemCount = this.#itemCount;
    const starts = this.#starts.subarray(0, this.#rowCount + 1);
    const values = this.#values.subarray(0, itemCount * itemWidth(this.spec));
    const rest = { starts, values, codes: null };
    return this.spec.kind === 'sparse'
      ? { kind: 'sparse', indices: this.#indices!.subarray(0, itemCount), ...rest }
      : { ...this.spec, ...rest };
  }

  hostBytes(file: ArrayBufferLike): number {
    let byteCount = 0;
    for (const array of [this.#starts, this.#values, this.#indices]) {
      if (array !== null && array.buffer !== file) byteCount += array.buffer.byteLength;
    }
    return byteCount;
  }
}
