// The codes of a segment's rows, which engines scan instead of values, made when rows arrive. Like the
// values, they grow into new buffers, so that views of readers never change.

import type { RowEncoder } from '../common/types.js';

/** Above this size all room for growth is allocated at once; see `withValueRoom`. */
const DOUBLED_BYTES_MAX = 1024 * 1024;

export class RowCodes {
  readonly #encoder: RowEncoder;
  readonly #dimension: number;
  #bytes: Uint8Array;

  constructor(encoder: RowEncoder, dimension: number) {
    this.#encoder = encoder;
    this.#dimension = dimension;
    this.#bytes = encoder.allocate(0);
  }

  /** Includes room for growth, which takes no memory until it is written. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Encodes the rows from..to of `values` on the calling thread. `rowsMax` bounds later growth. */
  append(values: Float32Array, from: number, to: number, rowsMax: number): void {
    this.#reserve(to, rowsMax);
    this.#encoder.encode({ values, dimension: this.#dimension, from, to, codes: this.#bytes });
  }

  /** Encodes the rows 0..rowCount in the threads of the pool. */
  async encodeAll(values: Float32Array, rowCount: number): Promise<void> {
    const codes = this.#allocate(rowCount);
    const dimension = this.#dimension;
    await this.#encoder.encodeAll({ values, dimension, from: 0, to: rowCount, codes });
    this.#bytes = codes;
  }

  /** Frees memory reserved for growth. */
  trim(rowCount: number): void {
    const byteLength = this.byteLength(rowCount);
    if ((this.#bytes.length - byteLength) * 8 <= byteLength) return;
    const trimmed = this.#allocate(rowCount);
    trimmed.set(this.#bytes.subarray(0, byteLength));
    this.#bytes = trimmed;
  }

  byteLength(rowCount: number): number {
    return this.#encoder.byteLength(rowCount, this.#dimension);
  }

  #reserve(rowCount: number, rowsMax: number): void {
    const needed = this.byteLength(rowCount);
    if (needed <= this.#bytes.length) return;
    const doubled = needed < DOUBLED_BYTES_MAX ? Math.min(2 * rowCount, rowsMax) : rowsMax;
    const grown = this.#allocate(Math.max(rowCount, doubled));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }

  #allocate(rowCount: number): Uint8Array {
    return this.#encoder.allocate(this.byteLength(rowCount));
  }
}
