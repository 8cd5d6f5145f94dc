// The vectors of the rows of a segment: the unnamed one, which every row has, the named ones, multi-vectors and
// sparse ones. The latter are by column (vector-names.ts); there are those that any of the rows has brought.

import type { NamedVectors, RowEncoder, VectorBatch } from '../common/types.js';
import { whenAllEnded } from '../common/when-all-ended.js';
import type { WorkerPool } from '../platform/pool.js';
import { MultiField, multiBytes } from './multi-field.js';
import type { SegmentData, VectorColumn } from './segment-data.js';
import { elementBytes, SparseField } from './sparse-field.js';
import { VectorField } from './vector-field.js';

/** The rows `from..from + count` of a batch. */
export interface RowsToAppend {
  readonly batch: VectorBatch;
  readonly from: number;
  readonly count: number;
}

/** Rows that will be the ones from `firstRow` on. */
export interface PlacedRows extends RowsToAppend {
  readonly firstRow: number;
}

/** What all named vectors of a column have in common. */
export type NamedShape = Pick<NamedVectors, 'name' | 'dimension'>;

/** The vectors of a segment as plain data. */
export type VectorData = Pick<SegmentData, keyof VectorColumn | 'named' | 'multi' | 'sparse'>;

interface Fields {
  readonly unnamed: VectorField;
  readonly named: Map<string, VectorField>;
  readonly multi: Map<string, MultiField>;
  readonly sparse: Map<string, SparseField>;
}

export class SegmentVectors {
  readonly #fields: Fields;
  /** Encodes rows as they arrive; null for no codes, and when the segment is sealed. */
  readonly #encoder: RowEncoder | null;
  /** Named vectors that no row has yet, with values of rows that will be appended next. */
  readonly #staged = new Map<string, VectorField>();

  /** @param dimension of the unnamed vector; 0 without it. */
  static createActive(dimension: number, encoder: RowEncoder | null): SegmentVectors {
    const unnamed = VectorField.createActive(dimension, encoder);
    const fields = { unnamed, named: new Map(), multi: new Map(), sparse: new Map() };
    return new SegmentVectors(fields, encoder);
  }

  /** Over the arrays of the data. */
  static fromData(data: VectorData & Pick<SegmentData, 'rowCount'>): SegmentVectors {
    const { named, multi, sparse, rowCount } = data;
    const fields = {
      unnamed: VectorField.fromColumn(data),
      named: new Map(named.map((column) => [column.name, VectorField.fromNamedColumn(column)])),
      multi: new Map(multi.map((column) => [column.name, new MultiField(column, rowCount)])),
      sparse: new Map(sparse.map((column) => [column.name, new SparseField(column, rowCount)])),
    };
    return new SegmentVectors(fields, null);
  }

  private constructor(fields: Fields, encoder: RowEncoder | null) {
    this.#fields = fields;
    this.#encoder = encoder;
  }

  get unnamed(): VectorField {
    return this.#fields.unnamed;
  }

  get named(): ReadonlyMap<string, VectorField> {
    return this.#fields.named;
  }

  get multi(): ReadonlyMap<string, MultiField> {
    return this.#fields.multi;
  }

  get sparse(): ReadonlyMap<string, SparseField> {
    return this.#fields.sparse;
  }

  /** Of the vectors that rows have once; a row without a named vector has zeros in its place. */
  get rowBytes(): number {
    return this.rowBytesWith([]);
  }

  /** The same with further named vectors, each once, of which there may be some already. */
  rowBytesWith(others: Iterable<NamedShape>): number {
    let valueCount = this.unnamed.dimension;
    for (const { dimension } of this.named.values()) valueCount += dimension;
    for (const { name, dimension } of others) if (!this.named.has(name)) valueCount += dimension;
    return valueCount * Float32Array.BYTES_PER_ELEMENT;
  }

  /** Bytes of the values of all rows. */
  dataBytes(rowCount: number): number {
    return rowCount * this.rowBytes + this.listBytes;
  }

  /** Those of sparse vectors and multi-vectors. */
  get listBytes(): number {
    let byteCount = 0;
    for (const field of this.#lists()) byteCount += field.dataBytes;
    return byteCount;
  }

  /** What rows of a batch add to `dataBytes`, also for the rows before them, which lack the vectors that are new. */
  bytesOf({ batch, from, count }: RowsToAppend, rowCount: number): number {
    const { multi = [], sparse = [] } = batch;
    const rowBytes = this.rowBytesWith(batch.named ?? []);
    let byteCount = count * rowBytes + rowCount * (rowBytes - this.rowBytes);
    for (const column of multi) byteCount += multiBytes(column, from, count);
    for (const column of sparse) byteCount += elementBytes(column, from, count);
    return byteCount;
  }

  /** Copies the values of rows that will be appended next, and encodes them, in the pool. */
  async stage(
    placed: readonly PlacedRows[],
    range: { readonly first: number; readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void> {
    this.#staged.clear();
    for (const { batch } of placed) {
      for (const { name, dimension } of batch.named ?? []) {
        if (this.named.has(name) || this.#staged.has(name)) continue;
        this.#staged.set(name, VectorField.createNamed(dimension, 0, this.#encoder));
      }
    }
    const staging = [...this.#dense(), ...this.#staged].map(([name, field]) => {
      const parts = placed.map((part) => ({ ...part, values: valuesIn(part.batch, name) }));
      return field.stage(parts, range, pool);
    });
    await whenAllEnded(staging);
  }

  /** Appends rows. Those that are staged have their values and codes in place already. */
  append(
    rows: PlacedRows,
    { isStaged, rowsMax }: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void {
    if (!isStaged) this.#staged.clear();
    this.#admit(rows);
    const { batch, from, count, firstRow: first } = rows;
    for (const [name, field] of this.#dense()) {
      if (!isStaged) field.write(valuesIn(batch, name), { from, count, first, rowsMax });
      const presence = batch.named?.find((vectors) => vectors.name === name)?.presence;
      field.append(presence, { from, count, first });
    }
    for (const [name, field] of this.multi) {
      const column = batch.multi?.find((vectors) => vectors.name === name);
      field.append(column, { from, count });
    }
    for (const [name, field] of this.sparse) {
      const column = batch.sparse?.find((vectors) => vectors.name === name);
      field.append(column, { from, count });
    }
  }

  /** Makes room for the vectors that no row before has. */
  #admit({ batch: { named = [], multi = [], sparse = [] }, firstRow }: PlacedRows): void {
    const fields = this.#fields;
    for (const { name, dimension } of named) {
      if (fields.named.has(name)) continue;
      const staged = this.#staged.get(name);
      fields.named.set(name, staged ?? VectorField.createNamed(dimension, firstRow, this.#encoder));
      this.#staged.delete(name);
    }
    for (const { name, dimension } of multi) {
      if (!fields.multi.has(name)) fields.multi.set(name, MultiField.create(dimension, firstRow));
    }
    for (const { name } of sparse) {
      if (!fields.sparse.has(name)) fields.sparse.set(name, SparseField.create(firstRow));
    }
  }

  /** Forgets the vectors of columns. Returns those that there were, and those of them with named vectors. */
  drop(isDropped: (column: string) => boolean): {
    readonly all: readonly string[];
    readonly named: readonly string[];
  } {
    const { named, multi, sparse } = this.#fields;
    const dropFrom = (fields: Map<string, unknown>) => {
      const dropped = [...fields.keys()].filter(isDropped);
      for (const column of dropped) fields.delete(column);
      return dropped;
    };
    dropFrom(this.#staged);
    const droppedNamed = dropFrom(named);
    return { all: [...droppedNamed, ...dropFrom(multi), ...dropFrom(sparse)], named: droppedNamed };
  }

  /** Frees memory reserved for growth. */
  seal(rowCount: number): void {
    this.#staged.clear();
    for (const [, field] of this.#dense()) field.seal(rowCount);
    for (const field of this.#lists()) field.seal();
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them, or more: some may have been dropped. */
  moveTo(stored: SegmentVectors): void {
    this.unnamed.moveTo(stored.unnamed);
    for (const [name, field] of this.named) field.moveTo(stored.named.get(name)!);
    for (const [name, field] of this.multi) field.moveTo(stored.multi.get(name)!);
    for (const [name, field] of this.sparse) field.moveTo(stored.sparse.get(name)!);
  }

  /** Makes the codes of this encoder, unless there are such; without an encoder it drops the codes. */
  async encode(encoder: RowEncoder | null, rowCount: number): Promise<void> {
    for (const [, field] of this.#dense()) await field.encode(encoder, rowCount);
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(rowCount: number, file: ArrayBufferLike): number {
    let byteCount = 0;
    for (const [, field] of this.#dense()) byteCount += field.hostBytes(rowCount, file);
    for (const field of this.#lists()) byteCount += field.hostBytes(file);
    return byteCount;
  }

  toData(rowCount: number): VectorData {
    return {
      ...this.unnamed.toColumn(rowCount),
      named: [...this.named].map(([name, field]) => field.toNamedColumn(name, rowCount)),
      multi: [...this.multi].map(([name, field]) => ({ name, ...field.column() })),
      sparse: [...this.sparse].map(([name, field]) => ({ name, ...field.column() })),
    };
  }

  /** Those that rows have once, by name, first the unnamed one by null. */
  *#dense(): Generator<readonly [string | null, VectorField]> {
    yield [null, this.unnamed];
    yield* this.named;
  }

  /** Those of which rows have any number of values. */
  *#lists(): Generator<MultiField | SparseField> {
    yield* this.multi.values();
    yield* this.sparse.values();
  }
}

/** Row-major values of all rows of the batch; undefined where none of them has the named vector. */
function valuesIn(batch: VectorBatch, name: string | null): Float32Array | undefined {
  if (name === null) return batch.values;
  return batch.named?.find((vectors) => vectors.name === name)?.values;
}
