// One sparse vector of the rows of a segment: the elements of all rows one after another. A row without the
// vector has no elements. Columns that were handed out do not change.

import { sharedFloat32, sharedInt32, sharedUint32 } from '../common/shared-array.js';
import type { SparseColumn, SparseVector } from '../common/types.js';
import { trimmed, withRoom } from './shared-arrays.js';

/** An index and a value. */
const ELEMENT_BYTES = 8;

/** Bytes of the elements of the rows `from..from + count`. */
export function elementBytes({ starts }: SparseColumn, from: number, count: number): number {
  return (starts[from + count]! - starts[from]!) * ELEMENT_BYTES;
}

export class SparseField {
  /** Row i has the elements `starts[i]..starts[i + 1]`; all have room for more. */
  #starts: Int32Array;
  #indices: Uint32Array;
  #values: Float32Array;
  #rowCount: number;

  /** One that the first `rowCount` rows lack. */
  static create(rowCount: number): SparseField {
    const starts = sharedInt32(rowCount + 1);
    const column = { starts, indices: sharedUint32(0), values: sharedFloat32(0) };
    return new SparseField(column, rowCount);
  }

  /** @param column of shared arrays, whose elements start at 0. */
  constructor({ starts, indices, values }: SparseColumn, rowCount: number) {
    this.#starts = starts;
    this.#indices = indices;
    this.#values = values;
    this.#rowCount = rowCount;
  }

  /** Bytes of the elements. */
  get dataBytes(): number {
    return this.#starts[this.#rowCount]! * ELEMENT_BYTES;
  }

  /** Appends rows of a batch; undefined where none of the batch has the vector. */
  append(
    column: SparseColumn | undefined,
    { from, count }: { readonly from: number; readonly count: number },
  ): void {
    const rowCount = this.#rowCount + count;
    this.#starts = withRoom(this.#starts, rowCount + 1);
    const end = this.#starts[this.#rowCount]!;
    if (column === undefined) {
      this.#starts.fill(end, this.#rowCount + 1, rowCount + 1);
    } else {
      const first = column.starts[from]!;
      const last = column.starts[from + count]!;
      this.#indices = withRoom(this.#indices, end + last - first);
      this.#values = withRoom(this.#values, end + last - first);
      this.#indices.set(column.indices.subarray(first, last), end);
      this.#values.set(column.values.subarray(first, last), end);
      for (let i = 1; i <= count; i++) {
        this.#starts[this.#rowCount + i] = column.starts[from + i]! - first + end;
      }
    }
    this.#rowCount = rowCount;
  }

  /** Frees memory reserved for growth. */
  seal(): void {
    const elementCount = this.#starts[this.#rowCount]!;
    this.#starts = trimmed(this.#starts, this.#rowCount + 1);
    this.#indices = trimmed(this.#indices, elementCount);
    this.#values = trimmed(this.#values, elementCount);
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them. */
  moveTo(stored: SparseField): void {
    this.#starts = stored.#starts;
    this.#indices = stored.#indices;
    this.#values = stored.#values;
  }

  /** Views; undefined for a row without the vector. */
  vectorAt(row: number): SparseVector | undefined {
    const [start, end] = [this.#starts[row]!, this.#starts[row + 1]!];
    if (start === end) return undefined;
    return {
      indices: this.#indices.subarray(start, end),
      values: this.#values.subarray(start, end),
    };
  }

  column(): SparseColumn {
    const elementCount = this.#starts[this.#rowCount]!;
    return {
      starts: this.#starts.subarray(0, this.#rowCount + 1),
      indices: this.#indices.subarray(0, elementCount),
      values: this.#values.subarray(0, elementCount),
    };
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(file: ArrayBufferLike): number {
    return [this.#starts, this.#indices, this.#values].reduce(
      (sum, { buffer }) => sum + (buffer === file ? 0 : buffer.byteLength),
      0,
    );
  }
}
