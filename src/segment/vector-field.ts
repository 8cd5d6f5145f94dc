// One vector of the rows of a segment: its values, the codes that engines scan, and, if it is named, which
// rows have it. A row without it has zeros in its place, so that a row has one number in all blocks of its
// segment, and engines need not know of absent vectors: views leave these rows out.

import {
  type Bitmap,
  countBits,
  createBitmap,
  firstBits,
  hasBit,
  intersectInto,
  setBit,
} from '../common/bitmap.js';
import { assert } from '../common/errors.js';
import { sharedFloat32 } from '../common/shared-array.js';
import { CODE_NAMES, type RowCodes, type RowEncoder, type VectorBlock } from '../common/types.js';
import { whenAllEnded } from '../common/when-all-ended.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { GrowingCodes } from './growing-codes.js';
import type { NamedColumn, VectorColumn } from './segment-data.js';
import { trimmedValues, withRoom, withValueRoom } from './shared-arrays.js';
import type { VisibleRows } from './visibility.js';

/** New rows of a batch. */
interface NewRows {
  /** Of the batch, in its order. */
  readonly from: number;
  readonly count: number;
  /** The number of the first of them in the segment. */
  readonly first: number;
}

/** Rows of a batch whose values are put in their places before they are appended. */
interface StagedValues {
  readonly from: number;
  readonly count: number;
  readonly firstRow: number;
  /** Row-major, of the whole batch; undefined where no row has the vector. */
  readonly values: Float32Array | undefined;
}

export class VectorField {
  readonly dimension: number;
  #values: Float32Array;
  #codes: RowCodes | null;
  /** Null without codes, and when the segment is sealed. */
  #growingCodes: GrowingCodes | null;
  /** The rows that have the vector; null for the vector that every row has. */
  #presence: Bitmap | null;
  #presentCount: number;
  /** Rows before this one may have values of rows that were staged and did not come. */
  #stagedRowCount = 0;
  /** Rows before this one have codes. Those that lack the vector may have been there before it. */
  #encodedRowCount = 0;

  /** The vector that every row has. */
  static createActive(dimension: number, encoder: RowEncoder | null): VectorField {
    return VectorField.#create(dimension, null, encoder);
  }

  /** A vector that the first `rowCount` rows lack. */
  static createNamed(dimension: number, rowCount: number, encoder: RowEncoder | null): VectorField {
    return VectorField.#create(dimension, createBitmap(rowCount), encoder);
  }

  static #create(
    dimension: number,
    presence: Bitmap | null,
    encoder: RowEncoder | null,
  ): VectorField {
    const hasCodes = encoder !== null && dimension > 0;
    const growingCodes = hasCodes ? new GrowingCodes(encoder, dimension) : null;
    const codes = growingCodes?.view(0) ?? null;
    return new VectorField({ dimension, values: sharedFloat32(0), codes }, presence, growingCodes);
  }

  static fromColumn(column: VectorColumn): VectorField {
    return new VectorField(column, null, null);
  }

  static fromNamedColumn(column: NamedColumn): VectorField {
    return new VectorField(column, column.presence, null);
  }

  private constructor(
    { dimension, values, codes }: VectorColumn,
    presence: Bitmap | null,
    growingCodes: GrowingCodes | null,
  ) {
    this.dimension = dimension;
    this.#values = values;
    this.#codes = codes;
    this.#growingCodes = growingCodes;
    this.#presence = presence;
    this.#presentCount = presence === null ? 0 : countBits(presence);
  }

  /**
   * Puts the values of rows that are appended next in their places, and encodes them. `values` are row-major,
   * those of the whole batch; undefined where no row has the vector.
   */
  write(
    values: Float32Array | undefined,
    { from, count, first, rowsMax }: NewRows & { readonly rowsMax: number },
  ): void {
    this.#reserve(first + count, rowsMax);
    this.#copy({ values, from, count, firstRow: first });
    this.#growingCodes?.encode(this.#values, this.#encodeFrom(first), first + count);
    this.#encodedRowCount = first + count;
  }

  /** The same for the rows `first..rowCount`, in the pool. There must be no growth meanwhile. */
  async stage(
    parts: readonly StagedValues[],
    { first, rowCount, rowsMax }: { first: number; rowCount: number; rowsMax: number },
    pool: WorkerPool,
  ): Promise<void> {
    this.#reserve(rowCount, rowsMax);
    this.#stagedRowCount = Math.max(this.#stagedRowCount, rowCount);
    const target = this.#values;
    await whenAllEnded(
      parts.map(async (part) => {
        const isShared = part.values?.buffer instanceof SharedArrayBuffer;
        if (!isShared) return this.#copy(part);
        const source = this.#cut(part.values!, part);
        await pool.run(copyValuesTask, { source, target, offset: part.firstRow * this.dimension });
      }),
    );
    await this.#growingCodes?.encodeInPool(target, this.#encodeFrom(first), rowCount);
    this.#encodedRowCount = rowCount;
  }

  #encodeFrom(first: number): number {
    return Math.min(first, this.#encodedRowCount);
  }

  /** Makes room for values and codes. Views that were handed out keep their arrays. */
  #reserve(rowCount: number, rowsMax: number): void {
    const { dimension } = this;
    this.#values = withValueRoom(this.#values, rowCount * dimension, rowsMax * dimension);
    this.#growingCodes?.reserve(rowCount, rowsMax);
  }

  #copy({ values, from, count, firstRow }: StagedValues): void {
    const target = this.#values.subarray(firstRow * this.dimension);
    if (values !== undefined) {
      target.set(this.#cut(values, { from, count }));
    } else if (firstRow < this.#stagedRowCount) {
      // What was staged here did not come.
      target.fill(0, 0, count * this.dimension);
    }
  }

  #cut(values: Float32Array, { from, count }: { from: number; count: number }): Float32Array {
    const cut = values.subarray(from * this.dimension, (from + count) * this.dimension);
    assert(cut.length === count * this.dimension, 'the batch has values for every row');
    return cut;
  }

  /** Shows rows whose values are in place. `flags` tells for each row of the batch whether it has the vector. */
  append(flags: Uint8Array | undefined, { from, count, first }: NewRows): void {
    const length = first + count;
    this.#codes = this.#growingCodes?.view(length) ?? null;
    if (this.#presence === null) return;
    const presence = { length, words: withRoom(this.#presence.words, (length + 31) >>> 5) };
    for (let i = 0; flags !== undefined && i < count; i++) {
      if (flags[from + i] === 0) continue;
      setBit(presence, first + i);
      this.#presentCount++;
    }
    this.#presence = presence;
  }

  /** Frees memory reserved for growth. */
  seal(rowCount: number): void {
    this.#values = trimmedValues(this.#values, rowCount * this.dimension);
    this.#growingCodes?.trim(rowCount);
    this.#codes = this.#growingCodes?.view(rowCount) ?? null;
    this.#growingCodes = null;
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them. */
  moveTo(stored: VectorField): void {
    this.#values = stored.#values;
    this.#codes = stored.#codes;
    this.#presence = stored.#presence;
  }

  /**
   * Encodes the vectors of a sealed segment in the threads of the pool, unless they have codes that the
   * encoder would make. Without an encoder it drops the codes.
   */
  async encode(encoder: RowEncoder | null, rowCount: number): Promise<void> {
    const { dimension } = this;
    if (dimension === 0) return;
    if (encoder !== null && this.#hasCodesOf(encoder, rowCount)) return;
    const codes = encoder?.allocate(rowCount, dimension) ?? null;
    if (codes !== null) {
      const values = this.#values;
      await encoder?.encodeAll({ values, dimension, from: 0, to: rowCount, codes });
    }
    this.#codes = codes;
  }

  #hasCodesOf(encoder: RowEncoder, rowCount: number): boolean {
    const codes = this.#codes;
    if (codes?.encoding !== encoder.encoding) return false;
    const byteLengths = encoder.byteLengths(rowCount, this.dimension);
    return CODE_NAMES.every((name) => (codes[name]?.length ?? 0) === byteLengths[name]);
  }

  has(row: number): boolean {
    return this.#presence === null || hasBit(this.#presence, row);
  }

  /** A view; zeros for a row that lacks the vector. */
  values(row: number): Float32Array {
    return this.#values.subarray(row * this.dimension, (row + 1) * this.dimension);
  }

  /** The visible rows that have the vector. */
  among(visible: VisibleRows, rowCount: number): VisibleRows {
    const presence = this.#presence;
    if (presence === null || this.#presentCount === rowCount) return visible;
    const rows = firstBits(presence, visible.rowCount);
    if (visible.rows !== null) intersectInto(rows, visible.rows);
    return { rowCount: visible.rowCount, rows, visibleCount: countBits(rows) };
  }

  block(rest: Pick<VectorBlock, 'key' | 'rowCount' | 'ids'>): VectorBlock {
    const { dimension } = this;
    const values = this.#values.subarray(0, rest.rowCount * dimension);
    return { ...rest, dimension, values, codes: this.#codes };
  }

  toColumn(rowCount: number): VectorColumn {
    const { dimension } = this;
    return {
      dimension,
      values: this.#values.subarray(0, rowCount * dimension),
      codes: this.#codes,
    };
  }

  toNamedColumn(name: string, rowCount: number): NamedColumn {
    return { name, ...this.toColumn(rowCount), presence: firstBits(this.#presence!, rowCount) };
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(rowCount: number, file: ArrayBufferLike): number {
    let bytes = 0;
    // Reserved room for values that was never written takes no memory.
    if (this.#values.buffer !== file) bytes += rowCount * this.dimension * 4;
    if (this.#presence !== null && this.#presence.words.buffer !== file) {
      bytes += this.#presence.words.buffer.byteLength;
    }
    const codes = this.#codes;
    if (codes === null || codes.tiles.buffer === file) return bytes;
    return CODE_NAMES.reduce((sum, name) => sum + (codes[name]?.length ?? 0), bytes);
  }
}

interface ValueCopy {
  readonly source: Float32Array;
  /** Over shared memory. */
  readonly target: Float32Array;
  readonly offset: number;
}

/** Copies values between arrays over shared memory. */
export const copyValuesTask: Task<ValueCopy, null> = {
  name: 'segment.copyValues',
  priority: 'write',
  run({ source, target, offset }) {
    target.set(source, offset);
    return null;
  },
};
