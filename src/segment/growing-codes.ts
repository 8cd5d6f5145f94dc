// The codes of a segment's rows, which engines scan instead of values, made when rows arrive. Like the
// values, they grow into new buffers, so that views of readers never change.

import { CODE_NAMES, type RowCodes, type RowEncoder } from '../common/types.js';

/** Above this size all room for growth is allocated at once; see `withValueRoom`. */
const DOUBLED_BYTES_MAX = 1024 * 1024;

export class GrowingCodes {
  readonly #encoder: RowEncoder;
  readonly #dimension: number;
  #codes: RowCodes;
  /** The number of rows that `#codes` has room for. */
  #capacity = 0;

  constructor(encoder: RowEncoder, dimension: number) {
    this.#encoder = encoder;
    this.#dimension = dimension;
    this.#codes = encoder.allocate(0, dimension);
  }

  /** Includes room for growth, which takes no memory until it is written. */
  get codes(): RowCodes {
    return this.#codes;
  }

  /** Encodes the rows from..to of `values` on the calling thread. `rowsMax` bounds later growth. */
  append(values: Float32Array, from: number, to: number, rowsMax: number): void {
    this.#reserve(to, rowsMax);
    this.#encoder.encode({ values, dimension: this.#dimension, from, to, codes: this.#codes });
  }

  /** Encodes the rows 0..rowCount in the threads of the pool. */
  async encodeAll(values: Float32Array, rowCount: number): Promise<void> {
    const dimension = this.#dimension;
    const codes = this.#encoder.allocate(rowCount, dimension);
    await this.#encoder.encodeAll({ values, dimension, from: 0, to: rowCount, codes });
    this.#codes = codes;
    this.#capacity = rowCount;
  }

  /** Frees memory reserved for growth. */
  trim(rowCount: number): void {
    if ((this.#capacity - rowCount) * 8 > rowCount) this.#resize(rowCount);
  }

  /** Bytes of the codes of `rowCount` rows. */
  byteLength(rowCount: number): number {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    return CODE_NAMES.reduce((sum, name) => sum + lengths[name], 0);
  }

  #reserve(rowCount: number, rowsMax: number): void {
    if (rowCount <= this.#capacity) return;
    const isSmall = this.byteLength(rowCount) < DOUBLED_BYTES_MAX;
    this.#resize(Math.max(rowCount, isSmall ? Math.min(2 * rowCount, rowsMax) : rowsMax));
  }

  #resize(capacity: number): void {
    const resized = this.#encoder.allocate(capacity, this.#dimension);
    for (const name of CODE_NAMES) {
      const target = resized[name];
      target?.set(this.#codes[name]!.subarray(0, target.length));
    }
    this.#codes = resized;
    this.#capacity = capacity;
  }
}
