// The vectors of the rows of a segment, by column (vector-names.ts). A column exists once a row with the vector was
// appended. The column of the unnamed vector is ''.

import type { RowEncoder, VectorBatch } from '../common/types.js';
import {
  bytesOfRows,
  type ColumnSpec,
  type Named,
  rowBytesOf,
  type VectorColumn,
} from '../common/vectors.js';
import { whenAllEnded } from '../common/when-all-ended.js';
import type { WorkerPool } from '../platform/pool.js';
import { DenseField } from './dense-field.js';
import { ListField } from './list-field.js';
import type { NewRows, RowsToAppend, SegmentVectorField, StoredVectors } from './vector-field.js';

export type PlacedRows = RowsToAppend & NewRows;

export class SegmentVectors {
  readonly #fields = new Map<string, SegmentVectorField>();
  /** Encodes rows as they arrive; null if there are no codes or the segment is sealed. */
  readonly #encoder: RowEncoder | null;
  readonly #others: () => readonly SegmentVectors[];
  /** Fields that no row uses yet, with the values of the rows that will be appended next. */
  readonly #staged = new Map<string, SegmentVectorField>();

  /** @param others returns other vectors of the collection, the last of which are the most similar. */
  constructor(encoder: RowEncoder | null, others: () => readonly SegmentVectors[] = () => []) {
    this.#encoder = encoder;
    this.#others = others;
  }

  /** Uses the arrays of the columns, which have `rowCount` rows. */
  static fromColumns(columns: readonly StoredVectors[], rowCount: number): SegmentVectors {
    const vectors = new SegmentVectors(null);
    for (const column of columns) {
      vectors.#fields.set(column.name, fieldOfColumn(column, rowCount));
    }
    return vectors;
  }

  get fields(): ReadonlyMap<string, SegmentVectorField> {
    return this.#fields;
  }

  /** Returns the bytes that each row takes at least, with the vectors of this segment and others, counted once. */
  rowBytesWith(others: Iterable<Named<ColumnSpec>>): number {
    let byteCount = this.#sum(({ spec }) => rowBytesOf(spec));
    for (const spec of others) if (!this.#fields.has(spec.name)) byteCount += rowBytesOf(spec);
    return byteCount;
  }

  get dataBytes(): number {
    return this.#sum(({ dataBytes }) => dataBytes);
  }

  /** Bytes of sparse vectors and multi-vectors, whose number of values varies by row. */
  get listBytes(): number {
    return this.#sum(({ spec, dataBytes }) => (isList(spec) ? dataBytes : 0));
  }

  /** Returns the bytes of all vectors of a row, including the zeros in place of dense vectors that it lacks. */
  bytesOfRow(row: number): number {
    return this.#sum((field) => field.bytesOfRows(row, row + 1));
  }

  /** Returns what rows of a batch add to `dataBytes`, including room in earlier rows for vectors that are new. */
  bytesOf({ batch, from, count }: RowsToAppend, rowCount: number): number {
    const rowBytes = this.rowBytesWith(batch.vectors);
    let byteCount = count * rowBytes + rowCount * (rowBytes - this.rowBytesWith([]));
    for (const column of batch.vectors) {
      if (isList(column)) byteCount += bytesOfRows(column, from, from + count);
    }
    return byteCount;
  }

  /** Copies and encodes the values of the rows that will be appended next, in the pool. */
  async stage(
    placed: readonly PlacedRows[],
    range: { readonly first: number; readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void> {
    this.#staged.clear();
    for (const column of placed.flatMap(({ batch }) => batch.vectors)) {
      const { name } = column;
      if (this.#fields.has(name) || this.#staged.has(name)) continue;
      this.#staged.set(name, this.#createField(column, range.first));
    }
    const staging = [...this.#fields, ...this.#staged].map(([name, field]) => {
      const parts = placed.map(({ batch, ...rows }) => {
        return { column: columnIn(batch, name), ...rows };
      });
      return field.stage(parts, range, pool);
    });
    await whenAllEnded(staging);
  }

  /** Appends rows. The values and codes of staged rows are already in place. */
  append(
    rows: PlacedRows,
    options: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void {
    const { batch, first } = rows;
    if (!options.isStaged) this.#staged.clear();
    for (const column of batch.vectors) {
      const { name } = column;
      if (this.#fields.has(name)) continue;
      const staged = this.#staged.get(name);
      this.#fields.set(name, staged ?? this.#createField(column, first));
      this.#staged.delete(name);
    }
    for (const [name, field] of this.#fields) {
      field.append(columnIn(batch, name), rows, options);
    }
  }

  /** Creates a field whose first `rowCount` rows lack the vector. */
  #createField(spec: Named<ColumnSpec>, rowCount: number): SegmentVectorField {
    if (spec.kind !== 'dense') return ListField.create(spec, rowCount);
    const encoder = this.#encoder;
    const coding = encoder && { encoder, basis: usefulBasis(this.#others(), spec.name) };
    return DenseField.create(spec, rowCount, coding);
  }

  /** Removes columns, and returns those that it removed. */
  drop(isDropped: (column: string) => boolean): ReadonlyMap<string, SegmentVectorField> {
    for (const column of this.#staged.keys()) if (isDropped(column)) this.#staged.delete(column);
    const dropped = new Map([...this.#fields].filter(([column]) => isDropped(column)));
    for (const column of dropped.keys()) this.#fields.delete(column);
    return dropped;
  }

  seal(): void {
    this.#staged.clear();
    for (const field of this.#fields.values()) field.seal();
  }

  /** Switches to the arrays of `stored`, which has all columns of this object and maybe columns dropped since. */
  switchTo(stored: SegmentVectors): void {
    for (const [name, field] of this.#fields) field.switchTo(stored.#fields.get(name)!);
  }

  /** Encodes all columns that lack the codes of this encoder. Without an encoder it drops the codes. */
  async encode(encoder: RowEncoder | null): Promise<void> {
    for (const field of this.#fields.values()) await field.encode(encoder);
  }

  /**
   * Makes the heads of sealed dense vectors in the pool, where they pay. To find that out takes a good part of the time
   * of an import, so it is tried again only after 1, 2, 4, 8 and so on segments in a row were left without.
   * @param others vectors of the collection, the last of which are the most similar.
   */
  async makeHeads(encoder: RowEncoder, others: readonly SegmentVectors[]): Promise<void> {
    for (const [column, field] of this.#dense()) {
      const { basis, headlessCount } = lastHead(others, column);
      if (Number.isInteger(Math.log2(Math.max(1, headlessCount)))) {
        await field.makeHead(encoder, basis);
      } else {
        field.decideHead();
      }
    }
  }

  /** Makes heads in the pool of the rows of growing fields that have none, in the bases of other vectors. */
  async makeGrowingHeads(others: readonly SegmentVectors[]): Promise<void> {
    for (const [column, field] of this.#dense()) {
      const basis = usefulBasis(others, column);
      if (basis !== null) await field.makeGrowingHead(basis);
    }
  }

  /** Uses the arrays of equal bases of other vectors of the collection. */
  shareBases(others: readonly SegmentVectors[]): void {
    for (const [column, field] of this.#dense()) field.shareBasis(lastHead(others, column).basis);
  }

  get bases(): readonly Uint8Array[] {
    return Array.from(this.#dense(), ([, { basis }]) => basis).filter((basis) => basis !== null);
  }

  /** The fields with codes by column. Those that are dropped in the meantime are skipped. */
  *#dense(): Iterable<[string, DenseField]> {
    for (const [column, field] of this.#fields) {
      if (field instanceof DenseField) yield [column, field];
    }
  }

  /** Returns the bytes of buffers other than `file`, the mapped file that columns may be in, and of `bases`. */
  hostBytes(file: ArrayBufferLike): number {
    return this.#sum((field) => field.hostBytes(file));
  }

  #sum(bytesOf: (field: SegmentVectorField) => number): number {
    let byteCount = 0;
    for (const field of this.#fields.values()) byteCount += bytesOf(field);
    return byteCount;
  }

  columns(): readonly StoredVectors[] {
    return Array.from(this.#fields, ([name, field]) => ({ name, ...field.column() }));
  }
}

/** Returns the last basis of the column, and the number of fields after it that were left without a head. */
function lastHead(vectors: readonly SegmentVectors[], column: string) {
  let headlessCount = 0;
  for (const { fields } of vectors.toReversed()) {
    const field = fields.get(column);
    if (!(field instanceof DenseField)) continue;
    if (field.basis !== null) return { basis: field.basis, headlessCount };
    if (field.isHeadless) headlessCount++;
  }
  return { basis: null, headlessCount };
}

/** Returns the last basis of the column, unless a later field was left without a head. */
function usefulBasis(vectors: readonly SegmentVectors[], column: string): Uint8Array | null {
  const { basis, headlessCount } = lastHead(vectors, column);
  return headlessCount === 0 ? basis : null;
}

function isList({ kind }: ColumnSpec): boolean {
  return kind !== 'dense';
}

/** Returns undefined if no row of the batch has the vector. */
function columnIn({ vectors }: VectorBatch, name: string): VectorColumn | undefined {
  return vectors.find((column) => column.name === name);
}

/** Creates a sealed field over the arrays of a column of `rowCount` rows. */
function fieldOfColumn(column: StoredVectors, rowCount: number): SegmentVectorField {
  return column.kind === 'dense'
    ? new DenseField(column, rowCount)
    : new ListField(column, rowCount);
}
