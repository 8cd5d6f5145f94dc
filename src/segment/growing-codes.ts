// The codes of a segment's rows, which engines scan instead of values, made when rows arrive. Like the
// values, they grow into new buffers, so that views of readers never change.

import { CODE_NAMES, type RowCodes, type RowEncoder } from '../common/types.js';

/** Above this size of the tiles all room for growth is allocated at once; see `withValueRoom`. */
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

  /** The codes of the first `rowCount` rows; later rows do not change them. */
  view(rowCount: number): RowCodes {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const { encoding, tiles, coarse, refinement } = this.#codes;
    return {
      encoding,
      tiles: tiles.subarray(0, lengths.tiles),
      coarse: coarse?.subarray(0, lengths.coarse) ?? null,
      refinement: refinement?.subarray(0, lengths.refinement) ?? null,
    };
  }

  /** Makes room for the codes of `rowCount` rows. `rowsMax` bounds later growth. */
  reserve(rowCount: number, rowsMax: number): void {
    if (rowCount <= this.#capacity) return;
    const room = this.#isSmall(rowCount) ? Math.min(2 * rowCount, rowsMax) : rowsMax;
    this.#resize(Math.max(rowCount, room));
  }

  /** Encodes the rows from..to of `values` on the calling thread. There must be room. */
  encode(values: Float32Array, from: number, to: number): void {
    this.#encoder.encode(this.#rowsOf(values, from, to));
  }

  /** The same in the threads of the pool. There must be no growth meanwhile. */
  encodeInPool(values: Float32Array, from: number, to: number): Promise<void> {
    return this.#encoder.encodeAll(this.#rowsOf(values, from, to));
  }

  #rowsOf(values: Float32Array, from: number, to: number) {
    return { values, dimension: this.#dimension, from, to, codes: this.#codes };
  }

  /** Frees memory reserved for growth, if it has been touched. */
  trim(rowCount: number): void {
    const isWasteful = (this.#capacity - rowCount) * 8 > rowCount;
    if (isWasteful && this.#isSmall(this.#capacity)) this.#resize(rowCount);
  }

  #isSmall(rowCount: number): boolean {
    return this.#encoder.byteLengths(rowCount, this.#dimension).tiles < DOUBLED_BYTES_MAX;
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
