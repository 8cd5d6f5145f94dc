// The codes of a segment's rows, which engines scan instead of values. Rows are encoded when they arrive. Like
// values, codes grow into new buffers, so that the views of readers never change.

import { ROW_CODE_NAMES, type RowCodes, type RowEncoder, type RowHead } from '../common/types.js';

/** If the tiles are larger than this, all room for growth is allocated at once; see `withValueRoom`. */
const DOUBLED_BYTES_MAX = 1024 * 1024;
/** Rows that the calling thread encodes to end the making of a head, which steady writes would otherwise prolong. */
const LAST_ROWS_MAX = 128;

/** The head of rows that arrive, in the basis of earlier ones. */
interface GrowingHead {
  readonly codes: RowHead;
  /** The number of rows that there is room for. Memory that was never touched is free. */
  readonly rowsMax: number;
  /** Rows before this one are encoded. */
  rowCount: number;
}

interface SegmentRows {
  readonly values: Float32Array;
  readonly rowCount: number;
}

export class GrowingCodes {
  readonly #encoder: RowEncoder;
  readonly #dimension: number;
  #codes: RowCodes;
  /** The number of rows that `#codes` has room for. */
  #capacity = 0;
  /** The number of rows that there may be, as far as is known. */
  #rowsMax = 0;
  /** The basis for a head, until there is room for this. */
  #nextBasis: Uint8Array | null;
  #head: GrowingHead | null = null;

  /** @param basis the basis of similar rows, for the head. */
  constructor(encoder: RowEncoder, dimension: number, basis: Uint8Array | null) {
    this.#encoder = encoder;
    this.#dimension = dimension;
    this.#nextBasis = basis;
    this.#codes = encoder.allocate(0, dimension);
  }

  get basis(): Uint8Array | null {
    return this.#head?.codes.basis ?? null;
  }

  /** Returns the codes of the first `rowCount` rows. Later rows do not change them. */
  view(rowCount: number): RowCodes {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const { encoding, tiles, coarse, refinement, basis, head } = this.#allCodes;
    return {
      encoding,
      tiles: tiles.subarray(0, lengths.tiles),
      coarse: coarse?.subarray(0, lengths.coarse) ?? null,
      refinement: refinement?.subarray(0, lengths.refinement) ?? null,
      basis,
      head,
    };
  }

  get #allCodes(): RowCodes {
    return this.#head === null ? this.#codes : { ...this.#codes, ...this.#head.codes };
  }

  /** The bytes of the codes of `rowCount` rows, without the basis. */
  byteLength(rowCount: number): number {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const head = this.#head;
    const headBytes = head && Math.ceil((head.codes.head.length * rowCount) / head.rowsMax);
    return ROW_CODE_NAMES.reduce((sum, name) => sum + lengths[name], headBytes ?? 0);
  }

  /**
   * Makes room for the codes of `rowCount` rows.
   * @param rowsMax limits later growth.
   */
  reserve(rowCount: number, rowsMax: number): void {
    this.#rowsMax = Math.max(rowCount, rowsMax);
    if (this.#nextBasis !== null) this.#head = this.#allocateHead(this.#nextBasis);
    this.#nextBasis = null;
    // More rows than expected do without a head.
    if (this.#head !== null && rowCount > this.#head.rowsMax) this.#head = null;
    if (rowCount <= this.#capacity) return;
    const room = this.#isSmall(rowCount) ? Math.min(2 * rowCount, rowsMax) : rowsMax;
    this.#resize(Math.max(rowCount, room));
  }

  /** Encodes the rows from..to of `values` on the calling thread. Requires room for them. */
  encode(values: Float32Array, from: number, to: number): void {
    this.#encoder.encode({ ...this.#rowsOf(values, from, to), codes: this.#allCodes });
    if (this.#head !== null) this.#head.rowCount = to;
  }

  /** Like `encode`, on the threads of the pool. The codes must not grow in the meantime. */
  async encodeInPool(values: Float32Array, from: number, to: number): Promise<void> {
    const head = this.#head;
    const rows = this.#rowsOf(values, from, to);
    await this.#encoder.encodeAll({ ...rows, codes: this.#allCodes });
    // A head that was made in the meantime has only the rows that were appended then.
    const made = this.#head;
    if (made === null) return;
    if (made !== head) await this.#encoder.encodeHead({ ...rows, head: made.codes });
    made.rowCount = to;
  }

  /** Encodes those of the first `rowCount` rows that lack the head, because it was made after they were encoded. */
  complete(values: Float32Array, rowCount: number): void {
    const head = this.#head;
    if (head !== null && head.rowCount < rowCount) this.encode(values, head.rowCount, rowCount);
  }

  /**
   * Makes a head of the rows, which may become more in the meantime, unless there is one. It is made in the pool, behind
   * searches.
   */
  async makeHead(basis: Uint8Array, currentRows: () => SegmentRows): Promise<void> {
    if (this.#head !== null) return;
    const made = this.#allocateHead(basis);
    if (made === null) return;
    for (;;) {
      const { values, rowCount } = currentRows();
      if (this.#rowsMax > made.rowsMax) return;
      if (rowCount - made.rowCount <= LAST_ROWS_MAX) {
        this.#head ??= made;
        this.complete(values, rowCount);
        return;
      }
      const rows = this.#rowsOf(values, made.rowCount, rowCount);
      await this.#encoder.encodeHead({ ...rows, head: made.codes });
      made.rowCount = rowCount;
    }
  }

  /** Frees memory reserved for growth. Large codes keep it, because memory that was never touched is free. */
  trim(rowCount: number): void {
    const isWasteful = (this.#capacity - rowCount) * 8 > rowCount;
    if (isWasteful && this.#isSmall(this.#capacity)) this.#resize(rowCount);
    if (this.#head === null) return;
    const codes = this.#encoder.trimHead(this.#head.codes, rowCount, this.#dimension);
    this.#head = { codes, rowsMax: rowCount, rowCount };
  }

  #rowsOf(values: Float32Array, from: number, to: number) {
    return { values, dimension: this.#dimension, from, to };
  }

  #allocateHead(basis: Uint8Array): GrowingHead | null {
    const rowsMax = this.#rowsMax;
    const codes = this.#encoder.allocateHead(rowsMax, this.#dimension, basis);
    return codes && { codes, rowsMax, rowCount: 0 };
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
