// The dense vectors of one name in a segment: their values, the codes that engines scan, and the rows that have one.
// A row without the vector holds zeros, so that a row has the same number in all blocks of its segment. Engines need
// not know about absent vectors, because views leave these rows out.

import {
  type Bitmap,
  countBits,
  createBitmap,
  createFullBitmap,
  firstBits,
  hasBit,
  NO_ROWS,
  setBit,
} from '../common/bitmap.js';
import { assert } from '../common/errors.js';
import { sharedFloat32 } from '../common/shared-array.js';
import {
  CODE_NAMES,
  type RowCodes,
  type RowEncoder,
  type RowHead,
  type VectorBlock,
} from '../common/types.js';
import {
  type DenseColumn,
  type DenseSpec,
  itemBytes,
  specOf,
  type VectorColumn,
} from '../common/vectors.js';
import { whenAllEnded } from '../common/when-all-ended.js';
import type { Task, WorkerPool } from '../platform/pool.js';
import { GrowingCodes } from './growing-codes.js';
import { trimmedValues, withRoom, withValueRoom } from './shared-arrays.js';
import type { NewRows, SegmentVectorField, StagedRows } from './vector-field.js';
import { type VisibleRows, visibleAmong } from './visibility.js';

export class DenseField implements SegmentVectorField {
  readonly spec: DenseSpec;
  #values: Float32Array;
  /** Null if there are no codes or while they grow. */
  #codes: RowCodes | null;
  /** Null if there are no codes or the segment is sealed. */
  #growingCodes: GrowingCodes | null = null;
  /** The rows that have the vector; null while all have it. */
  #presence: Bitmap | null;
  #presentCount: number;
  #rowCount: number;
  /** Rows before this one may hold values that were staged but never appended. */
  #stagedRowCount = 0;
  /** Rows before this one have codes; this includes rows that lack the vector. */
  #encodedRowCount = 0;
  /** Whether it was decided which head the rows get, if any. Unknown, and thus false, for rows from a file without. */
  #isHeadDecided: boolean;

  /**
   * Creates a field whose first `rowCount` rows lack the vector.
   * @param coding the encoder of the rows, and the basis of similar rows, if there is one.
   */
  static create(
    spec: DenseSpec,
    rowCount: number,
    coding: { readonly encoder: RowEncoder; readonly basis: Uint8Array | null } | null,
  ): DenseField {
    const presence = rowCount === 0 ? null : createBitmap(rowCount);
    const column = { ...spec, values: sharedFloat32(0), presence, codes: null };
    const field = new DenseField(column, rowCount);
    if (coding === null) return field;
    field.#growingCodes = new GrowingCodes(coding.encoder, spec.dimension, coding.basis);
    field.#isHeadDecided = false;
    return field;
  }

  /** Creates a sealed field over the arrays of a column of `rowCount` rows. */
  constructor(column: DenseColumn & { readonly codes: RowCodes | null }, rowCount: number) {
    const { values, presence, codes } = column;
    this.spec = specOf(column);
    this.#values = values;
    this.#codes = codes;
    this.#isHeadDecided = codes !== null && codes.head !== null;
    this.#presence = presence;
    this.#presentCount = presence === null ? rowCount : countBits(presence);
    this.#rowCount = rowCount;
  }

  get #dimension(): number {
    return this.spec.dimension;
  }

  get dataBytes(): number {
    return this.bytesOfRows(0, this.#rowCount);
  }

  async stage(
    parts: readonly StagedRows[],
    { rowCount, rowsMax }: { readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void> {
    this.#reserve(rowCount, rowsMax);
    this.#stagedRowCount = Math.max(this.#stagedRowCount, rowCount);
    const target = this.#values;
    await whenAllEnded(
      parts.map(async ({ column, ...rows }) => {
        const isShared = column?.values.buffer instanceof SharedArrayBuffer;
        if (!isShared) return this.#copy(column, rows);
        const source = this.#valuesOf(column, rows);
        await pool.run(copyValuesTask, { source, target, offset: rows.first * this.#dimension });
      }),
    );
    await this.#growingCodes?.encodeInPool(target, this.#encodeFrom, rowCount);
    this.#encodedRowCount = rowCount;
  }

  append(
    column: VectorColumn | undefined,
    rows: NewRows,
    { isStaged, rowsMax }: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void {
    const rowCount = rows.first + rows.count;
    if (!isStaged) {
      this.#reserve(rowCount, rowsMax);
      this.#copy(column, rows);
      this.#growingCodes?.encode(this.#values, this.#encodeFrom, rowCount);
      this.#encodedRowCount = rowCount;
    } else {
      this.#growingCodes?.complete(this.#values, rowCount);
    }
    this.#addPresence(column, rows);
    this.#rowCount = rowCount;
  }

  get #encodeFrom(): number {
    return Math.min(this.#rowCount, this.#encodedRowCount);
  }

  /** Makes room for values and codes. Views that were returned keep their arrays. */
  #reserve(rowCount: number, rowsMax: number): void {
    const dimension = this.#dimension;
    this.#values = withValueRoom(this.#values, rowCount * dimension, rowsMax * dimension);
    this.#growingCodes?.reserve(rowCount, rowsMax);
  }

  #copy(column: VectorColumn | undefined, rows: NewRows): void {
    const target = this.#values.subarray(rows.first * this.#dimension);
    if (column !== undefined) {
      target.set(this.#valuesOf(column, rows));
    } else if (rows.first < this.#stagedRowCount) {
      // The values that were staged here were never appended.
      target.fill(0, 0, rows.count * this.#dimension);
    }
  }

  #valuesOf({ values }: VectorColumn, { from, count }: NewRows): Float32Array {
    const cut = values.subarray(from * this.#dimension, (from + count) * this.#dimension);
    assert(cut.length === count * this.#dimension, 'the batch has values for every row');
    return cut;
  }

  /** Records which of the new rows have the vector. */
  #addPresence(column: VectorColumn | undefined, { from, count, first }: NewRows): void {
    const added = column?.kind === 'dense' ? column.presence : NO_ROWS;
    if (added === null && this.#presence === null && first === this.#rowCount) {
      this.#presentCount += count;
      return;
    }
    const length = first + count;
    // Rows between the known ones and the new ones were appended before any row had the vector.
    const before = this.#presence ?? createFullBitmap(this.#rowCount);
    const presence = { length, words: withRoom(before.words, (length + 31) >>> 5) };
    for (let i = 0; added !== NO_ROWS && i < count; i++) {
      if (added !== null && !hasBit(added, from + i)) continue;
      setBit(presence, first + i);
      this.#presentCount++;
    }
    this.#presence = presence;
  }

  seal(): void {
    this.#values = trimmedValues(this.#values, this.#rowCount * this.#dimension);
    this.#growingCodes?.trim(this.#rowCount);
    this.#codes = this.#currentCodes;
    this.#growingCodes = null;
  }

  get #currentCodes(): RowCodes | null {
    return this.#growingCodes?.view(this.#rowCount) ?? this.#codes;
  }

  switchTo(stored: DenseField): void {
    const basis = this.basis;
    this.#values = stored.#values;
    this.#codes = stored.#codes;
    this.#presence = stored.#presence;
    this.shareBasis(basis);
  }

  /** The basis of the head, if there is one. */
  get basis(): Uint8Array | null {
    return (this.#growingCodes ?? this.#codes)?.basis ?? null;
  }

  /** Uses the array of a basis with the same bytes. */
  shareBasis(basis: Uint8Array | null): void {
    const codes = this.#codes;
    const own = codes?.basis ?? null;
    if (codes === null || own === null || basis === null || own === basis) return;
    if (Buffer.compare(own, basis) === 0) this.#codes = { ...codes, basis };
  }

  /** Whether it was decided that there is no head. */
  get isHeadless(): boolean {
    return this.#isHeadDecided && this.basis === null;
  }

  /** Leaves sealed rows as they are. */
  decideHead(): void {
    this.#isHeadDecided = true;
  }

  /** Makes the head of sealed rows in the pool if it pays; see `RowEncoder.makeHead`. Decides only once. */
  async makeHead(encoder: RowEncoder, previous: Uint8Array | null): Promise<void> {
    const codes = this.#codes;
    if (codes === null || this.#isHeadDecided) return;
    const rows = { values: this.#values, dimension: this.#dimension, rowCount: this.#rowCount };
    const made = await encoder.makeHead(rows, previous, headOf(codes));
    this.#codes = { ...codes, ...(made ?? { basis: null, head: null }) };
    this.#isHeadDecided = true;
  }

  /** Makes a head of the rows that arrived so far in the pool, unless they have one. Those that follow get it, too. */
  async makeGrowingHead(basis: Uint8Array): Promise<void> {
    const currentRows = () => ({ values: this.#values, rowCount: this.#rowCount });
    await this.#growingCodes?.makeHead(basis, currentRows);
  }

  async encode(encoder: RowEncoder | null): Promise<void> {
    const dimension = this.#dimension;
    const rowCount = this.#rowCount;
    if (this.#codes !== null && encoder?.accepts(this.#codes, rowCount, dimension)) return;
    const codes = encoder?.allocate(rowCount, dimension) ?? null;
    if (codes !== null) {
      await encoder?.encodeAll({ values: this.#values, dimension, from: 0, to: rowCount, codes });
    }
    this.#codes = codes;
    this.#isHeadDecided = false;
  }

  narrow(visible: VisibleRows): VisibleRows {
    const presence = this.#presence;
    if (presence === null || this.#presentCount === this.#rowCount) return visible;
    return visibleAmong(visible, presence);
  }

  block(rest: Pick<VectorBlock, 'key' | 'ids'>): VectorBlock {
    const { dimension } = this.spec;
    const rowCount = this.#rowCount;
    const values = this.#values.subarray(0, rowCount * dimension);
    const hasProvisionalHead = !this.#isHeadDecided;
    return { ...rest, rowCount, dimension, values, codes: this.#currentCodes, hasProvisionalHead };
  }

  bytesOfRows(from: number, to: number): number {
    return (to - from) * itemBytes(this.spec);
  }

  vectorAt(row: number): Float32Array | undefined {
    if (this.#presence !== null && !hasBit(this.#presence, row)) return undefined;
    return this.#values.subarray(row * this.#dimension, (row + 1) * this.#dimension);
  }

  column(): DenseColumn & { readonly codes: RowCodes | null } {
    return {
      ...this.spec,
      values: this.#values.subarray(0, this.#rowCount * this.#dimension),
      presence: this.#presence && firstBits(this.#presence, this.#rowCount),
      codes: this.#currentCodes,
    };
  }

  hostBytes(file: ArrayBufferLike): number {
    let bytes = 0;
    // Room that is reserved for values but was never written takes no memory.
    if (this.#values.buffer !== file) bytes += this.dataBytes;
    if (this.#presence !== null && this.#presence.words.buffer !== file) {
      bytes += this.#presence.words.buffer.byteLength;
    }
    if (this.#growingCodes !== null) return bytes + this.#growingCodes.byteLength(this.#rowCount);
    const codes = this.#codes;
    if (codes === null || codes.tiles.buffer === file) return bytes;
    // The basis may belong to other segments as well, so the collection counts it.
    const names = CODE_NAMES.filter((name) => name !== 'basis');
    return names.reduce((sum, name) => sum + (codes[name]?.length ?? 0), bytes);
  }
}

function headOf({ basis, head }: RowCodes): RowHead | null {
  return basis === null || head === null ? null : { basis, head };
}

interface ValueCopy {
  readonly source: Float32Array;
  /** In shared memory. */
  readonly target: Float32Array;
  readonly offset: number;
}

export const copyValuesTask: Task<ValueCopy, null> = {
  name: 'segment.copyValues',
  priority: 'write',
  run({ source, target, offset }) {
    target.set(source, offset);
    return null;
  },
};
