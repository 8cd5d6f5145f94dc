// A segment: rows of one collection with ids, values, metadata and visibility, all in SharedArrayBuffers. An
// active segment accepts rows; a sealed one changes only by deletions, and its rows may be in a mapped file.
// Blocks, views and bitmaps that it returns are immutable and stay valid. The collection keeps ids unique and
// assigns sequences.

import { NO_ROWS } from '../common/bitmap.js';
import type { MetadataColumn, MetadataView } from '../common/columns.js';
import { assert } from '../common/errors.js';
import type {
  FileMapping,
  MappingFailure,
  RowEncoder,
  Utf8Column,
  VectorBatch,
  VectorBlock,
} from '../common/types.js';
import { stringAt } from '../common/utf8-column.js';
import {
  type ColumnSpec,
  type Named,
  UNNAMED,
  type Vector,
  type VectorColumn,
} from '../common/vectors.js';
import type { WorkerPool } from '../platform/pool.js';
import { MetadataColumns } from './metadata-columns.js';
import { type SegmentData, textBuffers } from './segment-data.js';
import { type PlacedRows, SegmentVectors } from './segment-vectors.js';
import { GrowingUtf8 } from './shared-arrays.js';
import type { RowsToAppend, SegmentVectorField } from './vector-field.js';
import { VectorNames } from './vector-names.js';
import { type Deletions, RowVisibility, type VisibleRows, visibleAmong } from './visibility.js';

/**
 * The limit for vectors, ids and metadata text of a segment. Offsets into text are signed 32-bit integers, and
 * the file, which also holds metadata columns, must fit the 4 GiB limit of a Uint8Array.
 */
export const SEGMENT_BYTES_MAX = 2 ** 31 - 1;

interface ActiveSegmentOptions {
  readonly key: string;
  readonly number: number;
  readonly rowsMax: number;
  /** The segment is full once its vectors take this many bytes; unlimited by default. */
  readonly vectorBytesMax?: number;
  /** The number of metadata paths kept as columns. Other paths are only in the JSON. */
  readonly columnsMax: number;
  /** Encodes rows as they arrive; null for no codes. */
  readonly encoder?: RowEncoder | null;
  /** Returns the other segments of the collection in order of arrival. */
  readonly others?: () => readonly Segment[];
  /** SEGMENT_BYTES_MAX by default; it must have room for one row. */
  readonly bytesMax?: number;
}

/** The state that only an active segment has. */
interface Growth {
  readonly rowsMax: number;
  readonly vectorBytesMax: number;
  readonly bytesMax: number;
  readonly metadata: MetadataColumns;
  readonly ids: GrowingUtf8;
  readonly json: GrowingUtf8;
  /**
   * Rows by their first row whose values and codes are already in place and that `append` will add. It is a map
   * because a log can contain a hundred thousand writes of one row.
   */
  readonly staged: Map<number, PlacedRows>;
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
  /** Cached blocks by column. */
  #lastBlocks = new Map<string, VectorBlock>();
  /** Cached bytes of a sealed segment in memory, without visibility. */
  #sealedBytes: number | null = null;
  #lastView: MetadataView | null = null;
  #homeKey: string | null = null;
  #names = new VectorNames();
  #hasDroppedVectors = false;

  static createActive(options: ActiveSegmentOptions): Segment {
    const growth = {
      rowsMax: options.rowsMax,
      vectorBytesMax: options.vectorBytesMax ?? Number.POSITIVE_INFINITY,
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
    const others = () => (options.others?.() ?? []).map((segment) => segment.#vectors);
    return new Segment(data, new SegmentVectors(options.encoder ?? null, others), growth);
  }

  /**
   * Creates a sealed segment over the arrays of `data`; only deletions are copied.
   * @param mapping the file that the arrays are views of, if any.
   */
  static fromData(data: SegmentData, mapping: FileMapping | null = null): Segment {
    const vectors = SegmentVectors.fromColumns(data.vectors, data.rowCount);
    const segment = new Segment(data, vectors, null);
    segment.#mapping = mapping;
    return segment;
  }

  private constructor(
    data: Omit<SegmentData, 'vectors'>,
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

  /** Returns the vector bytes of each row if it had the vectors of all these segments. */
  rowBytesWith(others: readonly Segment[]): number {
    const specs = new Map<string, Named<ColumnSpec>>();
    for (const segment of others) {
      for (const [name, { spec }] of segment.#vectors.fields) specs.set(name, { name, ...spec });
    }
    return this.#vectors.rowBytesWith(specs.values());
  }

  /**
   * Looks up vectors by these names from now on and removes vectors that were dropped. Returns the keys of their
   * blocks; null if none were dropped.
   */
  readNamesFrom(names: VectorNames): readonly string[] | null {
    this.#names = names;
    const dropped = this.#vectors.drop((column) => names.isDropped(column));
    if (dropped.size === 0) return null;
    this.#hasDroppedVectors ||= this.isSealed;
    this.#forgetCached();
    return this.#blockKeysOf(dropped);
  }

  /** Like `toData`, for the file of the segment. Vectors that are dropped from now on are in the file. */
  toStoredData(): SegmentData {
    this.#hasDroppedVectors = false;
    return this.toData();
  }

  /** Whether the file of the segment may hold vectors that were dropped. */
  get hasDroppedVectors(): boolean {
    return this.#hasDroppedVectors;
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

  /** Returns how many rows with the vectors of the batch fit by number; `fits` also applies the byte limits. */
  spareRowsFor({ vectors }: Pick<VectorBatch, 'vectors'>): number {
    return this.#growth === null ? 0 : this.#rowsMaxWith(this.#growth, vectors) - this.rowCount;
  }

  /** Whether there is no room for another row with the vectors that the segment holds. */
  get isFull(): boolean {
    return this.spareRowsFor({ vectors: [] }) <= 0;
  }

  /** Bytes of vectors, ids and metadata text; SEGMENT_BYTES_MAX limits them. */
  get dataBytes(): number {
    return this.#vectors.dataBytes + this.textBytes;
  }

  /** Bytes of sparse vectors and multi-vectors, whose number of values varies by row. */
  get listBytes(): number {
    return this.#vectors.listBytes;
  }

  get textBytes(): number {
    const ids = this.#ids.offsets;
    const json = this.#json.offsets;
    // Not by `at`, which V8 does not optimize for shared arrays.
    return ids[ids.length - 1]! + json[json.length - 1]!;
  }

  /** Returns how many rows of the batch, from `from` on, can be appended. */
  fits(batch: VectorBatch, from: number): number {
    const growth = this.#growth;
    if (growth === null) return 0;
    const available = Math.min(batch.count - from, Math.max(0, this.spareRowsFor(batch)));
    const vectorBytes = this.#vectors.dataBytes;
    const vectorBytesMax = this.#listBytesMax(growth, batch);
    const hasRoomFor = (count: number) => {
      const added = this.#vectors.bytesOf({ batch, from, count }, this.rowCount);
      const text = textBytes(batch.ids, from, count) + textBytes(batch.metadata, from, count);
      // A single row may exceed the limit for vectors, so that a row of any size fits into a segment.
      const isOnly = this.rowCount + count === 1;
      return (
        (isOnly || vectorBytes + added <= vectorBytesMax) &&
        vectorBytes + this.textBytes + added + text <= growth.bytesMax
      );
    };
    if (hasRoomFor(available)) return available;
    let fitting = 0;
    let tooMany = available;
    while (tooMany - fitting > 1) {
      const middle = (fitting + tooMany) >>> 1;
      if (hasRoomFor(middle)) fitting = middle;
      else tooMany = middle;
    }
    return fitting;
  }

  /** The number of rows limits the bytes of dense vectors. Only with lists of values does the byte limit apply, too. */
  #listBytesMax({ vectorBytesMax }: Growth, { vectors }: VectorBatch): number {
    const hasLists = vectors.some(({ kind }) => kind !== 'dense') || this.listBytes > 0;
    return hasLists ? vectorBytesMax : Number.POSITIVE_INFINITY;
  }

  /**
   * Appends rows of the batch, at most `fits`, as inserted at `sequence`, which must not decrease. Returns the
   * first new row. The metadata must be valid; after an exception the segment is unusable.
   */
  append(batch: VectorBatch, from: number, count: number, sequence: number): number {
    const growth = this.#growth;
    assert(growth !== null, 'the segment is active');
    assert(from + count <= batch.count, `row ${from + count} of ${batch.count}`);
    assert(count <= this.fits(batch, from), `${count} rows do not fit`);
    const first = this.rowCount;
    const rowCount = first + count;
    const rows = { batch, from, count, first };
    const isInPlace = isStaged(growth.staged, rows);
    growth.staged.delete(first);
    // Rows that were not staged may bring new vectors, which the rows staged after them have no room for.
    if (!isInPlace) growth.staged.clear();
    this.#vectors.append(rows, {
      isStaged: isInPlace,
      rowsMax: Math.max(rowCount, this.#rowsMaxWith(growth, batch.vectors)),
    });
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
   * Copies and encodes the values of the rows that will be appended next, in this order, so that appending them
   * takes microseconds per row. The rows stay invisible until then. Rows that are appended in another way do not
   * use the staged values. When the promise settles, no work is in progress. Values in shared memory, as in large
   * batches, are copied in the pool.
   */
  async stage(rows: readonly RowsToAppend[], pool: WorkerPool): Promise<void> {
    const growth = this.#growth;
    assert(growth !== null, 'the segment is active');
    growth.staged.clear();
    const first = this.rowCount;
    const staged = placed(rows, first);
    const rowCount = staged.reduce((sum, { count }) => sum + count, first);
    const room = staged.map(({ batch }) => this.#rowsMaxWith(growth, batch.vectors));
    const range = { first, rowCount, rowsMax: Math.max(rowCount, ...room) };
    await this.#vectors.stage(staged, range, pool);
    for (const part of staged) growth.staged.set(part.first, part);
  }

  /** Whether `stage` has prepared exactly these rows. */
  hasStaged(rows: readonly RowsToAppend[]): boolean {
    const staged = this.#growth?.staged;
    if (staged === undefined) return false;
    return placed(rows, this.rowCount).every((part) => isStaged(staged, part));
  }

  /** Returns the most rows that can ever fit if some have these vectors. */
  #rowsMaxWith(
    { rowsMax, vectorBytesMax, bytesMax }: Growth,
    vectors: readonly Named<ColumnSpec>[],
  ): number {
    const rowBytes = this.#vectors.rowBytesWith(vectors);
    return Math.min(
      rowsMax,
      Math.ceil(vectorBytesMax / rowBytes),
      Math.max(1, Math.floor(bytesMax / rowBytes)),
    );
  }

  /** Makes the segment immutable except for deletions and frees memory reserved for growth. */
  seal(): void {
    if (this.#growth === null) return;
    const { ids, json, metadata } = this.#growth;
    this.#vectors.seal();
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
   * Switches to the arrays of `stored`, the same sealed segment as read from its file. Blocks and views that were
   * returned before keep the former arrays.
   */
  switchTo(stored: Segment): void {
    assert(
      this.isSealed && stored.rowCount === this.rowCount,
      'a file has the rows of its segment',
    );
    this.#vectors.switchTo(stored.#vectors);
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
   * Encodes the rows of a sealed segment in the pool, unless it already has the codes of this encoder. Without an
   * encoder it drops the codes.
   */
  async encode(encoder: RowEncoder | null): Promise<void> {
    assert(this.#growth === null, 'the segment is sealed');
    await this.#vectors.encode(encoder);
    this.#forgetCached();
  }

  /**
   * Makes the heads of a sealed segment in the pool, where they pay. Blocks that were returned before stay without.
   * @param others segments of the collection in order of arrival, the last of which are the most similar.
   */
  async makeHeads(encoder: RowEncoder, others: readonly Segment[]): Promise<void> {
    assert(this.#growth === null, 'the segment is sealed');
    await this.#vectors.makeHeads(
      encoder,
      others.map((segment) => segment.#vectors),
    );
    this.#forgetCached();
  }

  /** Makes heads in the pool of the rows that arrived so far, in the bases of other segments, if these have heads. */
  async makeGrowingHeads(others: readonly Segment[]): Promise<void> {
    await this.#vectors.makeGrowingHeads(others.map((segment) => segment.#vectors));
    this.#lastBlocks = new Map();
  }

  /** Uses the arrays of equal bases of other segments. */
  shareBases(others: readonly Segment[]): void {
    this.#vectors.shareBases(others.map((segment) => segment.#vectors));
    this.#forgetCached();
  }

  /** The bases of the heads. */
  get bases(): readonly Uint8Array[] {
    return this.#vectors.bases;
  }

  /** Deletes a row. Repeating this at the same sequence has no effect. */
  markDeleted(row: number, sequence: number): void {
    this.#visibility.delete(row, sequence);
  }

  insertedSequence(row: number): number {
    return this.#visibility.insertedSequence(row);
  }

  /** Returns Infinity for a row that is not deleted. */
  deletedSequence(row: number): number {
    return this.#visibility.deletedSequence(row);
  }

  id(row: number): string {
    return stringAt(this.#ids, row);
  }

  /** Returns a view, not a copy. */
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

  /**
   * Returns the vector of a row by name, '' for the unnamed vector; undefined if the row lacks it. The result is a
   * view, or a copy if the values are in a mapped file, which must not be read after the check for damage.
   */
  vectorAt(row: number, name: string): Vector | undefined {
    const vector = this.vectorField(name)?.vectorAt(row);
    return vector === undefined || this.#mapping === null ? vector : copyOf(vector);
  }

  /** Returns the bytes of all vectors of a row, including the zeros in place of dense vectors that it lacks. */
  vectorBytes(row: number): number {
    return this.#vectors.bytesOfRow(row);
  }

  /** Returns the vectors of all rows, which do not change; undefined if no row has one. */
  vectorColumn(name: string): VectorColumn | undefined {
    return this.vectorField(name)?.column();
  }

  /** The fields of all vectors by column. A field exists until its vectors are dropped. */
  get vectorFields(): ReadonlyMap<string, SegmentVectorField> {
    return this.#vectors.fields;
  }

  /** Returns the field of the vectors of a name; undefined if no row has one. */
  vectorField(name: string): SegmentVectorField | undefined {
    const column = this.#names.columnOf(name);
    return column === undefined ? undefined : this.#vectors.fields.get(column);
  }

  /** Returns the visible rows that have the vector. */
  withVector(name: string, visible: VisibleRows): VisibleRows {
    return this.vectorField(name)?.narrow(visible) ?? visibleAmong(visible, NO_ROWS);
  }

  /** Whether a part of the file is on other machines only. */
  get isPartial(): boolean {
    return this.#mapping !== null && this.#mapping.kept !== null;
  }

  /** Whether the rows are in a mapped file. */
  get isMapped(): boolean {
    return this.#mapping !== null;
  }

  /** Why a part of the mapped file could not be read; null if all that was needed could be. */
  get failure(): MappingFailure | null {
    return this.#mapping?.failure ?? null;
  }

  /** Returns the JSON text as the client sent it. */
  metadata(row: number): string {
    return stringAt(this.#json, row);
  }

  /**
   * Returns the dense vectors or multi-vectors of a name for all rows, with zeros for rows without a dense vector;
   * undefined if no row has one. It is the same object until the next `append` or `seal`.
   */
  block(name: string): VectorBlock | undefined {
    const column = this.#names.columnOf(name);
    if (column === undefined) return undefined;
    const known = this.#lastBlocks.get(column);
    if (known !== undefined) return known;
    const rest = { key: this.#blockKey(column), ids: this.#ids };
    const block = this.#vectors.fields.get(column)?.block(rest);
    if (block !== undefined) this.#lastBlocks.set(column, block);
    return block;
  }

  /** The keys of the blocks of dense vectors, by which engines cache what they load. */
  get blockKeys(): readonly string[] {
    return this.#blockKeysOf(this.#vectors.fields);
  }

  #blockKeysOf(fields: ReadonlyMap<string, SegmentVectorField>): readonly string[] {
    return [...fields].flatMap(([column, field]) =>
      field.spec.kind === 'dense' ? this.#blockKey(column) : [],
    );
  }

  #blockKey(column: string): string {
    return column === UNNAMED ? this.key : `${this.key}/${column}`;
  }

  /**
   * By which the nodes of a cluster are chosen that keep the whole file of the segment: the id of the first row, on which
   * they agree before they have the same file, unless another key is stored beside the file.
   */
  get homeKey(): string {
    this.#homeKey ??= this.id(0);
    return this.#homeKey;
  }

  set homeKey(key: string) {
    this.#homeKey = key;
  }

  /** Sets the sequence of all rows, whose file was written before it was known. No snapshot may contain them yet. */
  insertAt(sequence: number): void {
    this.#visibility.insertAllAt(sequence);
  }

  /** Returns the same object until the next `append` or `seal`. */
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

  /** Returns the number of rows inserted at or before the sequence, which are the first rows. */
  rowCountAt(sequence: number): number {
    return this.#visibility.rowCountAt(sequence);
  }

  visibleAt(sequence: number): VisibleRows {
    return this.#visibility.visibleAt(sequence);
  }

  /** Returns the row inserted at `sequence` with this id, or -1. */
  findRow(sequence: number, id: Uint8Array): number {
    const end = this.#visibility.firstRowFrom(sequence, true);
    for (let row = this.#visibility.firstRowFrom(sequence, false); row < end; row++) {
      if (this.idEquals(row, id)) return row;
    }
    return -1;
  }

  /**
   * Returns the row after the one inserted at `sequence` with this id or, if this segment lacks it, the first row
   * inserted after `sequence`. The rows of one write may be in two segments; if the previous segment contains the
   * id, this one continues at row 0.
   */
  rowAfter(sequence: number, id: Uint8Array): number {
    const row = this.findRow(sequence, id);
    return row < 0 ? this.#visibility.firstRowFrom(sequence, true) : row + 1;
  }

  /** Counts the rows deleted at or before the sequence, which a compaction with this horizon drops. */
  deletedCountAt(sequence: number): number {
    return this.#visibility.deletedCountAt(sequence);
  }

  /** Returns the deletions after `afterSequence`, up to and including `throughSequence`. */
  deletionsBetween(afterSequence: number, throughSequence: number): Deletions {
    return this.#visibility.deletionsBetween(afterSequence, throughSequence);
  }

  /** Bytes of the mapped file, which the system can take back. */
  get mappedBytes(): number {
    return this.#mapping?.bytes.byteLength ?? 0;
  }

  /** Bytes of all buffers in memory, including memory reserved for growth, but not `bases`, which segments share. */
  get hostBytes(): number {
    if (this.#growth === null && this.#sealedBytes !== null) {
      return this.#sealedBytes + this.#visibility.hostBytes;
    }
    const mapped = this.#mapping?.bytes.buffer;
    let bytes = 0;
    const text = { ids: this.#ids, json: this.#json, columns: this.metadataView().columns };
    for (const buffer of textBuffers(text)) if (buffer !== mapped) bytes += buffer.byteLength;
    // In a segment from a file, ids are in the file like everything else.
    const file = this.#ids.bytes.buffer;
    bytes += this.#vectors.hostBytes(file);
    this.#sealedBytes = bytes;
    return bytes + this.#visibility.hostBytes;
  }

  /** Returns the current rows, for another thread or a file. */
  toData(): SegmentData {
    const { columns, isComplete, json } = this.metadataView();
    const { rowCount } = this;
    return {
      key: this.key,
      number: this.number,
      rowCount,
      vectors: this.#vectors.columns(),
      ids: this.#ids,
      json,
      insertedSequences: this.#visibility.insertedSequences(),
      deletedSequences: this.#visibility.deletedSequences(),
      columns,
      isComplete,
    };
  }
}

function copyOf(vector: Vector): Vector {
  if (vector instanceof Float32Array) return vector.slice();
  const values = vector.values.slice();
  return 'indices' in vector
    ? { indices: vector.indices.slice(), values }
    : { dimension: vector.dimension, values };
}

/** Assigns consecutive rows of the segment, starting at `first`. */
function placed(rows: readonly RowsToAppend[], first: number): PlacedRows[] {
  let next = first;
  return rows.map((part) => {
    const staged = { ...part, first: next };
    next += part.count;
    return staged;
  });
}

function isStaged(
  staged: ReadonlyMap<number, PlacedRows>,
  { batch, from, count, first }: PlacedRows,
): boolean {
  const rows = staged.get(first);
  return rows !== undefined && rows.batch === batch && rows.from === from && rows.count >= count;
}

function textBytes(column: Utf8Column, from: number, count: number): number {
  return column.offsets[from + count]! - column.offsets[from]!;
}
