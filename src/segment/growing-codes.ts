// The codes of a segment's rows, which engines scan instead of values. Rows are encoded when they arrive. Like
// values, codes grow into new buffers, so that the views of readers never change.

import { ROW_CODE_NAMES, type RowCodes, type RowEncoder, type RowHead } from '../common/types.js';

/** If the tiles are larger than this, all room for growth is allocated at once; see `withValueRoom`. */
const DOUBLED_BYTES_MAX = 1024 * 1024;
/**
 * Fewer rows wait for others, or for a search, before the head has them: to encode a single one takes 50 µs, and each
 * further one 3 (512 dimensions).
 */
const HEAD_ROWS_MIN = 64;

/** The head of rows that arrive, in the basis of earlier ones. */
interface GrowingHead extends RowHead {
  /** The number of rows that there is room for. Memory that was never touched is free. */
  readonly rowsMax: number;
  /** Rows before this one are encoded. */
  rowCount: number;
}

interface EncodedRows {
  readonly values: Float32Array;
  readonly rowCount: number;
}

export class GrowingCodes {
  readonly #encoder: RowEncoder;
  readonly #dimension: number;
  #codes: RowCodes;
  /** The number of rows that `#codes` has room for. */
  #capacity = 0;
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
    return this.#head?.basis ?? null;
  }

  /** Returns the codes of the first `rowCount` rows. Later rows do not change them. */
  view({ values, rowCount }: EncodedRows): RowCodes {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const { encoding, tiles, coarse, refinement } = this.#codes;
    const head = this.#head;
    if (head !== null && head.rowCount < rowCount) this.#encodeHead(head, values, rowCount);
    return {
      encoding,
      tiles: tiles.subarray(0, lengths.tiles),
      coarse: coarse?.subarray(0, lengths.coarse) ?? null,
      refinement: refinement?.subarray(0, lengths.refinement) ?? null,
      basis: head?.basis ?? null,
      head: head?.head ?? null,
    };
  }

  /** The bytes of the codes of `rowCount` rows, without the basis. */
  byteLength(rowCount: number): number {
    const lengths = this.#encoder.byteLengths(rowCount, this.#dimension);
    const headBytes =
      this.#head === null ? 0 : (this.#head.head.length * rowCount) / this.#head.rowsMax;
    return ROW_CODE_NAMES.reduce((sum, name) => sum + lengths[name], Math.ceil(headBytes));
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
    this.#encoder.encode(this.#rowsOf(values, from, to));
    this.#noteEncoded(values, from, to);
  }

  /** Like `encode`, on the threads of the pool. The codes must not grow in the meantime. */
  async encodeInPool(values: Float32Array, from: number, to: number): Promise<void> {
    const head = to - from < HEAD_ROWS_MIN ? null : this.#head;
    const rows = this.#rowsOf(values, from, to);
    if (head === null) {
      await this.#encoder.encodeAll(rows);
      this.#noteEncoded(values, from, to);
      return;
    }
    if (head.rowCount < from) this.#encodeHead(head, values, from);
    head.rowCount = from;
    const { basis, head: bytes } = head;
    await this.#encoder.encodeAll({ ...rows, codes: { ...rows.codes, basis, head: bytes } });
    head.rowCount = to;
  }

  /**
   * Makes a head of the rows, which may become more in the meantime, unless there is one. It is made in the pool, behind
   * searches.
   */
  async makeHead(basis: Uint8Array, currentRows: () => EncodedRows): Promise<void> {
    if (this.#head !== null) return;
    const head = this.#allocateHead(basis);
    if (head === null) return;
    for (;;) {
      const { values, rowCount } = currentRows();
      if (rowCount > head.rowsMax) return;
      if (rowCount < head.rowCount + HEAD_ROWS_MIN) break;
      const from = head.rowCount;
      await this.#encoder.encodeHeadBehind(this.#headRowsOf(head, values, from, rowCount));
      head.rowCount = rowCount;
    }
    this.#head ??= head;
  }

  /** Frees memory reserved for growth. Large codes keep it, because memory that was never touched is free. */
  trim({ values, rowCount }: EncodedRows): void {
    const isWasteful = (this.#capacity - rowCount) * 8 > rowCount;
    if (isWasteful && this.#isSmall(this.#capacity)) this.#resize(rowCount);
    const head = this.#head;
    if (head === null) return;
    if (head.rowCount < rowCount) this.#encodeHead(head, values, rowCount);
    const trimmed = this.#encoder.trimHead(head, rowCount, this.#dimension);
    this.#head = { ...trimmed, rowsMax: rowCount, rowCount };
  }

  #rowsOf(values: Float32Array, from: number, to: number) {
    return { values, dimension: this.#dimension, from, to, codes: this.#codes };
  }

  #headRowsOf({ basis, head }: RowHead, values: Float32Array, from: number, to: number) {
    return { values, dimension: this.#dimension, from, to, head: { basis, head } };
  }

  #allocateHead(basis: Uint8Array): GrowingHead | null {
    const rowsMax = this.#rowsMax;
    const head = this.#encoder.allocateHead(rowsMax, this.#dimension, basis);
    return head && { ...head, rowsMax, rowCount: 0 };
  }

  /** The head follows once enough rows were encoded without it. */
  #noteEncoded(values: Float32Array, from: number, to: number): void {
    const head = this.#head;
    if (head === null) return;
    head.rowCount = Math.min(head.rowCount, from);
    if (to - head.rowCount >= HEAD_ROWS_MIN) this.#encodeHead(head, values, to);
  }

  #encodeHead(head: GrowingHead, values: Float32Array, to: number): void {
    this.#encoder.encodeHead(this.#headRowsOf(head, values, head.rowCount, to));
    head.rowCount = to;
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
