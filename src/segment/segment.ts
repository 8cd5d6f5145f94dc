// A segment: rows of one collection with ids, values, metadata and visibility, all over
// SharedArrayBuffers. An active segment takes rows; a sealed one changes by deletions only, and its rows
// may be in a mapped file. Blocks, views and bitmaps that it returns are immutable and stay valid. The
// collection keeps ids unique and assigns sequences.

import type { MetadataColumn, MetadataView } from '../common/columns.js';
import { assert } from '../common/errors.js';
import type {
  FileMapping,
  MultiColumn,
  MultiVector,
  RowEncoder,
  SparseVector,
  Utf8Column,
  VectorBatch,
  VectorBlock,
} from '../common/types.js';
import type { WorkerPool } from '../platform/pool.js';
import { MetadataColumns } from './metadata-columns.js';
import { multiBytes } from './multi-field.js';
import { type SegmentData, textBuffers } from './segment-data.js';
import {
  type PlacedRows,
  type RowsToAppend,
  SegmentVectors,
  type VectorData,
  type VectorShapes,
} from './segment-vectors.js';
import { decodeUtf8, GrowingUtf8 } from './shared-arrays.js';
import type { SparseField } from './sparse-field.js';
import { type Deletions, RowVisibility, type VisibleRows } from './visibility.js';

/**
 * The largest size of vectors, ids and metadata text of a segment. Offsets into text are signed 32-bit
 * numbers, and its file, which also has the columns, must fit the 4 GiB limit of a Uint8Array.
 */
export const SEGMENT_BYTES_MAX = 2 ** 31 - 1;

interface ActiveSegmentOptions extends VectorShapes {
  readonly key: string;
  readonly number: number;
  readonly rowsMax: number;
  /** The number of metadata paths kept as columns; further paths are in the JSON only. */
  readonly columnsMax: number;
  /** Encodes rows as they arrive; null for no codes. */
  readonly encoder?: RowEncoder | null;
  /** SEGMENT_BYTES_MAX by default; it must have room for one row. */
  readonly bytesMax?: number;
}

/** What only an active segment has. */
interface Growth {
  readonly rowsMax: number;
  readonly bytesMax: number;
  readonly metadata: MetadataColumns;
  readonly ids: GrowingUtf8;
  readonly json: GrowingUtf8;
  /**
   * Rows that `append` will add, whose values and codes are in place already, by their first row: a log
   * can have a hundred thousand writes of a row.
   */
  staged: Map<number, PlacedRows>;
}

export class Segment {
  readonly key: string;
  readonly number: number;
  readonly #vectors: SegmentVectors;
  #growth: Growth | null;
  #ids: Utf8Column;
  #json: Utf8Column;
  #columns: ReadonlyMap<string, MetadataColumn>;
  #isComplete: boolean;
  #mapping: FileMapping | null = null;
  readonly #visibility: RowVisibility;
  /** The blocks of the vectors, null being the name of the unnamed one. */
  #lastBlocks = new Map<string | null, VectorBlock>();
  /** The bytes of a sealed segment in memory, without visibility, counted once; null before. */
  #sealedBytes: number | null = null;
  #lastView: MetadataView | null = null;

  static createActive(options: ActiveSegmentOptions): Segment {
    const growth = {
      rowsMax: options.rowsMax,
      bytesMax: options.bytesMax ?? SEGMENT_BYTES_MAX,
      metadata: new MetadataColumns(options.columnsMax),
      ids: new GrowingUtf8(),
      json: new GrowingUtf8(),
      staged: new Map(),
    };
    const data = {
      key: options.key,
      number: options.number,
      rowCount: 0,
      ids: growth.ids.view(),
      json: growth.json.view(),
      insertedSequences: new RowVisibility().insertedSequences(),
      deletedSequences: null,
      columns: new Map(),
      isComplete: true,
    };
    const vectors = SegmentVectors.createActive(options, options.encoder ?? null);
    return new Segment(data, vectors, growth);
  }

  /**
   * Creates a sealed segment over the arrays of `data`; only deletions are copied. `mapping` is the file
   * that arrays are views of.
   */
  static fromData(data: SegmentData, mapping: FileMapping | null = null): Segment {
    const segment = new Segment(data, SegmentVectors.fromData(data), null);
    segment.#mapping = mapping;
    return segment;
  }

  private constructor(
    data: Omit<SegmentData, keyof VectorData>,
    vectors: SegmentVectors,
    growth: Growth | null,
  ) {
    this.key = data.key;
    this.number = data.number;
    this.#vectors = vectors;
    this.#growth = growth;
    this.#ids = data.ids;
    this.#json = data.json;
    this.#columns = data.columns;
    this.#isComplete = data.isComplete;
    this.#visibility = new RowVisibility(
      data.insertedSequences,
      data.rowCount,
      data.deletedSequences,
    );
  }

  /** Of the unnamed vector; 0 without it. */
  get dimension(): number {
    return this.#vectors.unnamed.dimension;
  }

  get rowCount(): number {
    return this.#visibility.rowCount;
  }

  get liveCount(): number {
    return this.#visibility.rowCount - this.#visibility.deletedCount;
  }

  get isSealed(): boolean {
    return this.#growth === null;
  }

  /** Rows left up to the row limit; `fits` also applies the byte limit. */
  get spareRowCount(): number {
    return this.#growth === null ? 0 : this.#growth.rowsMax - this.rowCount;
  }

  /** Bytes of vectors, ids and metadata text, which SEGMENT_BYTES_MAX limits. */
  get dataBytes(): number {
    return this.#vectors.dataBytes(this.rowCount) + this.textBytes;
  }

  /** Bytes of ids and metadata text. */
  get textBytes(): number {
    return this.#ids.offsets.at(-1)! + this.#json.offsets.at(-1)!;
  }

  /** The number of rows of the batch, from `from` on, that can be appended. */
  fits(batch: VectorBatch, from: number): number {
    if (this.#growth === null) return 0;
    const spareBytes = this.#growth.bytesMax - this.dataBytes;
    const bytesOf = (count: number) =>
      this.#vectors.bytesOf({ batch, from, count }) +
      textBytes(batch.ids, from, count) +
      textBytes(batch.metadata, from, count);
    const available = Math.min(batch.count - from, this.spareRowCount);
    if (bytesOf(available) <= spareBytes) return available;
    let fitting = 0;
    let tooMany = available;
    while (tooMany - fitting > 1) {
      const middle = (fitting + tooMany) >>> 1;
      if (bytesOf(middle) <= spareBytes) fitting = middle;
      else tooMany = middle;
    }
    return fitting;
  }

  /**
   * Appends at most `fits` rows of the batch, inserted at `sequence`, which must not decrease. Returns
   * the first new row. Metadata must have been validated; after an exception the segment is unusable.
   */
  append(batch: VectorBatch, from: number, count: number, sequence: number): number {
    const growth = this.#growth;
    assert(growth !== null, 'the segment is active');
    assert(from + count <= batch.count, `row ${from + count} of ${batch.count}`);
    assert(count <= this.fits(batch, from), `${count} rows do not fit`);
    const first = this.rowCount;
    const rowCount = first + count;
    const rows = { batch, from, count, firstRow: first };
    const isInPlace = isStaged(growth.staged, rows);
    growth.staged.delete(first);
    this.#vectors.append(rows, { isStaged: isInPlace, rowsMax: this.#rowsMax(growth) });
    growth.ids.append(batch.ids, from, count);
    growth.json.append(batch.metadata, from, count);
    this.#ids = growth.ids.view();
    this.#json = growth.json.view();
    if (batch.fields !== undefined) {
      growth.metadata.appendFields(first, batch.fields, from, count);
    } else {
      for (let row = first; row < rowCount; row++) growth.metadata.append(row, this.#json, row);
    }
    this.#visibility.append(count, sequence);
    this.#lastBlocks = new Map();
    this.#lastView = null;
    return first;
  }

  /**
   * Copies the values of rows that will be appended next, in this order, to their places, and encodes them
   * in the pool: appending them then takes microseconds per row. Nobody sees them before. It has no effect
   * on rows that are not appended as announced. Nothing is under way when it has ended. Large batches are
   * over shared memory, which is copied in the pool.
   */
  async stage(rows: readonly RowsToAppend[], pool: WorkerPool): Promise<void> {
    const growth = this.#growth;
    assert(growth !== null, 'the segment is active');
    growth.staged = new Map();
    const first = this.rowCount;
    const staged = placed(rows, first);
    const rowCount = staged.reduce((sum, { count }) => sum + count, first);
    const range = { first, rowCount, rowsMax: this.#rowsMax(growth) };
    await this.#vectors.stage(staged, range, pool);
    growth.staged = new Map(staged.map((part) => [part.firstRow, part]));
  }

  /** Whether `stage` has prepared exactly these rows. */
  hasStaged(rows: readonly RowsToAppend[]): boolean {
    const staged = this.#growth?.staged;
    if (staged === undefined) return false;
    return placed(rows, this.rowCount).every((part) => isStaged(staged, part));
  }

  /** The rows that fit at most: room for more is never needed. */
  #rowsMax({ rowsMax, bytesMax }: Growth): number {
    return Math.min(rowsMax, Math.floor(bytesMax / this.#vectors.rowBytes));
  }

  /** Makes the segment immutable except for deletions, and frees memory reserved for growth. */
  seal(): void {
    if (this.#growth === null) return;
    const { ids, json, metadata } = this.#growth;
    this.#vectors.seal(this.rowCount);
    ids.trim();
    json.trim();
    this.#ids = ids.view();
    this.#json = json.view();
    this.#columns = metadata.seal();
    this.#isComplete = metadata.isComplete;
    this.#visibility.trim();
    this.#growth = null;
    this.#forgetCached();
  }

  /**
   * Continues with the arrays of `stored`, the same sealed segment as its file has it. Blocks and views that
   * were handed out keep the former arrays.
   */
  moveTo(stored: Segment): void {
    assert(
      this.isSealed && stored.rowCount === this.rowCount,
      'a file has the rows of its segment',
    );
    this.#vectors.moveTo(stored.#vectors);
    this.#ids = stored.#ids;
    this.#json = stored.#json;
    this.#columns = stored.#columns;
    this.#isComplete = stored.#isComplete;
    this.#mapping = stored.#mapping;
    this.#forgetCached();
  }

  #forgetCached(): void {
    this.#sealedBytes = null;
    this.#lastBlocks = new Map();
    this.#lastView = null;
  }

  /**
   * Encodes the rows of a sealed segment in the threads of the pool, unless the segment has codes that the
   * encoder would make. Without an encoder it drops the codes.
   */
  async encode(encoder: RowEncoder | null): Promise<void> {
    assert(this.#growth === null, 'the segment is sealed');
    await this.#vectors.encode(encoder, this.rowCount);
    this.#forgetCached();
  }

  /** Deletes a row. Repeating it at the same sequence has no effect. */
  markDeleted(row: number, sequence: number): void {
    this.#visibility.delete(row, sequence);
  }

  insertedSequence(row: number): number {
    return this.#visibility.insertedSequence(row);
  }

  /** Infinity for a row that is not deleted. */
  deletedSequence(row: number): number {
    return this.#visibility.deletedSequence(row);
  }

  id(row: number): string {
    const { offsets, bytes } = this.#ids;
    return decodeUtf8(bytes, offsets[row]!, offsets[row + 1]!);
  }

  /** A view, not a copy. */
  idBytes(row: number): Uint8Array {
    const { offsets, bytes } = this.#ids;
    return bytes.subarray(offsets[row]!, offsets[row + 1]!);
  }

  idEquals(row: number, id: Uint8Array): boolean {
    const { offsets, bytes } = this.#ids;
    const start = offsets[row]!;
    if (offsets[row + 1]! - start !== id.length) return false;
    for (let i = 0; i < id.length; i++) if (bytes[start + i] !== id[i]) return false;
    return true;
  }

  /** A view; a copy if the values are in a mapped file, which must not be read after the check for damage. */
  values(row: number): Float32Array {
    return this.#kept(this.#vectors.unnamed.values(row));
  }

  /** The same for a named vector; undefined where the row does not have it. */
  namedValues(row: number, name: string): Float32Array | undefined {
    const field = this.#vectors.named.get(name);
    return field?.has(row) === true ? this.#kept(field.values(row)) : undefined;
  }

  /** The same for a multi-vector. */
  multiVector(row: number, name: string): MultiVector | undefined {
    const vector = this.#vectors.multi.get(name)?.vectorAt(row);
    return vector && { ...vector, values: this.#kept(vector.values) };
  }

  /** Bytes of the multi-vectors of a row. */
  multiBytes(row: number): number {
    let byteCount = 0;
    for (const field of this.#vectors.multi.values())
      byteCount += multiBytes(field.column(), row, 1);
    return byteCount;
  }

  /** The multi-vectors of all rows, which do not change. */
  multiColumn(name: string): MultiColumn {
    return this.#vectors.multi.get(name)!.column();
  }

  /** The same for a sparse vector. */
  sparseVector(row: number, name: string): SparseVector | undefined {
    const vector = this.#vectors.sparse.get(name)?.vectorAt(row);
    if (vector === undefined || this.#mapping === null) return vector;
    return { indices: vector.indices.slice(), values: vector.values.slice() };
  }

  #kept(values: Float32Array): Float32Array {
    return this.#mapping === null ? values : values.slice();
  }

  /** The sparse vectors of all rows, which exist as long as the segment. */
  sparseField(name: string): SparseField {
    return this.#vectors.sparse.get(name)!;
  }

  get sparseFields(): Iterable<SparseField> {
    return this.#vectors.sparse.values();
  }

  /** Of the visible rows those that have the named vector. */
  withNamed(name: string, visible: VisibleRows): VisibleRows {
    return this.#vectors.named.get(name)!.among(visible, this.rowCount);
  }

  /** Of the visible rows those that have the multi-vector. */
  withMulti(name: string, visible: VisibleRows): VisibleRows {
    return this.#vectors.multi.get(name)!.among(visible);
  }

  /** Whether the rows are in a mapped file. */
  get isMapped(): boolean {
    return this.#mapping !== null;
  }

  /** Whether a part of the mapped file could not be read. */
  get isDamaged(): boolean {
    return this.#mapping?.isDamaged ?? false;
  }

  /** The JSON text as sent by the client. */
  metadata(row: number): string {
    const { offsets, bytes } = this.#json;
    return decodeUtf8(bytes, offsets[row]!, offsets[row + 1]!);
  }

  /**
   * The unnamed or a named vector of all rows; rows without it have zeros. The same object until the next
   * `append` or `seal`.
   */
  block(name: string | null = null): VectorBlock {
    let block = this.#lastBlocks.get(name);
    if (block === undefined) {
      const field = name === null ? this.#vectors.unnamed : this.#vectors.named.get(name)!;
      block = field.block({ key: this.#blockKey(name), rowCount: this.rowCount, ids: this.#ids });
      this.#lastBlocks.set(name, block);
    }
    return block;
  }

  /** The keys of all blocks: engines keep what they load of each of them. */
  get blockKeys(): readonly string[] {
    return [null, ...this.#vectors.named.keys()].map((name) => this.#blockKey(name));
  }

  #blockKey(name: string | null): string {
    return name === null ? this.key : `${this.key}/${name}`;
  }

  /** The same object until the next `append` or `seal`. */
  metadataView(): MetadataView {
    this.#lastView ??= {
      rowCount: this.rowCount,
      columns: this.#growth?.metadata.view() ?? this.#columns,
      isComplete: this.#growth?.metadata.isComplete ?? this.#isComplete,
      ids: this.#ids,
      json: this.#json,
    };
    return this.#lastView;
  }

  /** The number of rows inserted at or before the sequence: these are the first rows. */
  rowCountAt(sequence: number): number {
    return this.#visibility.rowCountAt(sequence);
  }

  visibleAt(sequence: number): VisibleRows {
    return this.#visibility.visibleAt(sequence);
  }

  /** The row inserted at `sequence` with this id, or -1. */
  findRow(sequence: number, id: Uint8Array): number {
    const end = this.#visibility.firstRowFrom(sequence, true);
    for (let row = this.#visibility.firstRowFrom(sequence, false); row < end; row++) {
      if (this.idEquals(row, id)) return row;
    }
    return -1;
  }

  /**
   * The row after the one inserted at `sequence` with this id, or, if there is none in this segment, the
   * first row inserted after `sequence`. Rows of one write may be in two segments: if the previous
   * segment has the id, this one continues at row 0.
   */
  rowAfter(sequence: number, id: Uint8Array): number {
    const row = this.findRow(sequence, id);
    return row < 0 ? this.#visibility.firstRowFrom(sequence, true) : row + 1;
  }

  /** The number of rows deleted at or before the sequence, which a compaction with this horizon drops. */
  endedBefore(sequence: number): number {
    return this.#visibility.deletedCountAt(sequence);
  }

  /** Deletions after `afterSequence`, up to and including `throughSequence`. */
  deletionsBetween(afterSequence: number, throughSequence: number): Deletions {
    return this.#visibility.deletionsBetween(afterSequence, throughSequence);
  }

  /** Bytes of the mapped file, which the system can take back. */
  get mappedBytes(): number {
    return this.#mapping?.bytes.byteLength ?? 0;
  }

  /** Bytes of all buffers in memory, including memory reserved for growth. */
  get hostBytes(): number {
    if (this.#growth === null && this.#sealedBytes !== null) {
      return this.#sealedBytes + this.#visibility.hostBytes;
    }
    const mapped = this.#mapping?.bytes.buffer;
    let bytes = 0;
    const text = { ids: this.#ids, json: this.#json, columns: this.metadataView().columns };
    for (const buffer of textBuffers(text)) if (buffer !== mapped) bytes += buffer.byteLength;
    // Of a segment from a file, ids are in the file like everything else.
    const file = this.#ids.bytes.buffer;
    bytes += this.#vectors.hostBytes(this.rowCount, file);
    this.#sealedBytes = bytes;
    return bytes + this.#visibility.hostBytes;
  }

  /** The present rows, for another thread or a file. */
  toData(): SegmentData {
    const { columns, isComplete, json } = this.metadataView();
    const { rowCount } = this;
    return {
      key: this.key,
      number: this.number,
      ...this.#vectors.toData(rowCount),
      rowCount,
      ids: this.#ids,
      json,
      insertedSequences: this.#visibility.insertedSequences(),
      deletedSequences: this.#visibility.deletedSequences(),
      columns,
      isComplete,
    };
  }
}

/** With the rows that they will be, from `first` on. */
function placed(rows: readonly RowsToAppend[], first: number): PlacedRows[] {
  let firstRow = first;
  return rows.map((part) => {
    const staged = { ...part, firstRow };
    firstRow += part.count;
    return staged;
  });
}

function isStaged(
  staged: ReadonlyMap<number, PlacedRows>,
  { batch, from, count, firstRow }: PlacedRows,
): boolean {
  const rows = staged.get(firstRow);
  return rows !== undefined && rows.batch === batch && rows.from === from && rows.count >= count;
}

function textBytes(column: Utf8Column, from: number, count: number): number {
  return column.offsets[from + count]! - column.offsets[from]!;
}
