// One multi-vector of the rows of a segment: the vectors of all rows one after another. A row without it has
// none. Columns that were handed out do not change. There are no codes: MaxSim reads values.

import {
  type Bitmap,
  countBits,
  createBitmap,
  firstBits,
  intersectInto,
  setBit,
} from '../common/bitmap.js';
import { valuesOfRows } from '../common/multi-column.js';
import { sharedFloat32, sharedInt32 } from '../common/shared-array.js';
import type { MultiColumn, MultiVector } from '../common/types.js';
import { trimmed, withRoom } from './shared-arrays.js';
import type { VisibleRows } from './visibility.js';

/** Bytes of the values of the rows `from..from + count`. */
export function multiBytes(column: MultiColumn, from: number, count: number): number {
  return valuesOfRows(column, from, from + count).byteLength;
}

export class MultiField {
  readonly dimension: number;
  /** Row i has the vectors `starts[i]..starts[i + 1]`; both arrays have room for more. */
  #starts: Int32Array;
  #values: Float32Array;
  #rowCount: number;
  /** Made when a search needs it. */
  #presence: Bitmap | null = null;

  /** One that the first `rowCount` rows lack. */
  static create(dimension: number, rowCount: number): MultiField {
    const starts = sharedInt32(rowCount + 1);
    return new MultiField({ dimension, starts, values: sharedFloat32(0) }, rowCount);
  }

  /** @param column of shared arrays, whose vectors start at 0. */
  constructor({ dimension, starts, values }: MultiColumn, rowCount: number) {
    this.dimension = dimension;
    this.#starts = starts;
    this.#values = values;
    this.#rowCount = rowCount;
  }

  /** Bytes of the values. */
  get dataBytes(): number {
    return this.#valueCount * Float32Array.BYTES_PER_ELEMENT;
  }

  get #valueCount(): number {
    return this.#starts[this.#rowCount]! * this.dimension;
  }

  /** Appends rows of a batch; undefined where none of the batch has it. */
  append(
    column: MultiColumn | undefined,
    { from, count }: { readonly from: number; readonly count: number },
  ): void {
    const rowCount = this.#rowCount + count;
    const end = this.#starts[this.#rowCount]!;
    this.#starts = withRoom(this.#starts, rowCount + 1);
    if (column === undefined) {
      this.#starts.fill(end, this.#rowCount + 1, rowCount + 1);
    } else {
      const added = valuesOfRows(column, from, from + count);
      const at = this.#valueCount;
      this.#values = withRoom(this.#values, at + added.length);
      this.#values.set(added, at);
      const shift = end - column.starts[from]!;
      for (let i = 1; i <= count; i++) {
        this.#starts[this.#rowCount + i] = column.starts[from + i]! + shift;
      }
    }
    this.#rowCount = rowCount;
  }

  /** Frees memory reserved for growth. */
  seal(): void {
    this.#values = trimmed(this.#values, this.#valueCount);
    this.#starts = trimmed(this.#starts, this.#rowCount + 1);
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them. */
  moveTo(stored: MultiField): void {
    this.#starts = stored.#starts;
    this.#values = stored.#values;
  }

  has(row: number): boolean {
    return this.#starts[row + 1]! > this.#starts[row]!;
  }

  /** The visible rows that have it. */
  among({ rowCount, rows: visible }: VisibleRows): VisibleRows {
    const rows = firstBits(this.#presentRows(), rowCount);
    if (visible !== null) intersectInto(rows, visible);
    return { rowCount, rows, visibleCount: countBits(rows) };
  }

  /** The rows that have it; the same object until rows are appended. */
  #presentRows(): Bitmap {
    if (this.#presence?.length === this.#rowCount) return this.#presence;
    const rows = createBitmap(this.#rowCount);
    for (let row = 0; row < this.#rowCount; row++) if (this.has(row)) setBit(rows, row);
    this.#presence = rows;
    return rows;
  }

  /** A view; undefined for a row without it. */
  vectorAt(row: number): MultiVector | undefined {
    if (!this.has(row)) return undefined;
    return { dimension: this.dimension, values: valuesOfRows(this.column(), row, row + 1) };
  }

  column(): MultiColumn {
    return {
      dimension: this.dimension,
      starts: this.#starts.subarray(0, this.#rowCount + 1),
      values: this.#values.subarray(0, this.#valueCount),
    };
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(file: ArrayBufferLike): number {
    return [this.#starts, this.#values].reduce(
      (sum, { buffer }) => sum + (buffer === file ? 0 : buffer.byteLength),
      0,
    );
  }
}
