// The codes of a segment's rows, which engines scan instead of values. Rows are encoded when they arrive. Like
// values, codes grow into new buffers, so that the views of readers never change.

import { ROW_CODE_NAMES, type RowCodes, type RowEncoder } from '../common/types.js';

/** If the tiles are larger than this, all room for growth is allocated at once; see `withValueRoom`. */
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

  /** Returns the codes of the first `rowCount` rows. Later rows do not change them. */
  view(rowCount: number): RowCodes {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const { encoding, tiles, coarse, refinement } = this.#codes;
    return {
      encoding,
      tiles: tiles.subarray(0, lengths.tiles),
      coarse: coarse?.subarray(0, lengths.coarse) ?? null,
      refinement: refinement?.subarray(0, lengths.refinement) ?? null,
      // A head is made for all rows together, once they no longer change.
      basis: null,
      head: null,
    };
  }

  /**
   * Makes room for the codes of `rowCount` rows.
   * @param rowsMax limits later growth.
   */
  reserve(rowCount: number, rowsMax: number): void {
    if (rowCount <= this.#capacity) return;
    const room = this.#isSmall(rowCount) ? Math.min(2 * rowCount, rowsMax) : rowsMax;
    this.#resize(Math.max(rowCount, room));
  }

  /** Encodes the rows from..to of `values` on the calling thread. Requires room for them. */
  encode(values: Float32Array, from: number, to: number): void {
    this.#encoder.encode(this.#rowsOf(values, from, to));
  }

  /** Like `encode`, on the threads of the pool. The codes must not grow in the meantime. */
  encodeInPool(values: Float32Array, from: number, to: number): Promise<void> {
    return this.#encoder.encodeAll(this.#rowsOf(values, from, to));
  }

  #rowsOf(values: Float32Array, from: number, to: number) {
    return { values, dimension: this.#dimension, from, to, codes: this.#codes };
  }

  /** Frees memory reserved for growth. Large codes keep it, because memory that was never touched is free. */
  trim(rowCount: number): void {
    const isWasteful = (this.#capacity - rowCount) * 8 > rowCount;
    if (isWasteful && this.#isSmall(this.#capacity)) this.#resize(rowCount);
  }

  #isSmall(rowCount: number): boolean {
    return this.#encoder.byteLengths(rowCount, this.#dimension).tiles < DOUBLED_BYTES_MAX;
  }

  #resize(capacity: number): void {
    const resized = this.#encoder.allocate(capacity, this.#dimension);
    for (const name of ROW_CODE_NAMES) {
      const target = resized[name];
      target?.set(this.#codes[name]!.subarray(0, target.length));
    }
    this.#codes = resized;
    this.#capacity = capacity;
  }
}
