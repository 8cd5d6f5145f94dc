// The vectors of the rows of a segment: the unnamed one, which every row has, the named ones, multi-vectors and
// sparse ones.

import type { RowEncoder, VectorBatch } from '../common/types.js';
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

/** Which vectors the rows have. */
export interface VectorShapes {
  /** Of the unnamed vector; 0 without it. */
  readonly dimension: number;
  /** The dimensions of the named vectors, by name. */
  readonly named?: ReadonlyMap<string, number>;
  /** The same for multi-vectors. */
  readonly multi?: ReadonlyMap<string, number>;
  /** The names of the sparse vectors. */
  readonly sparse?: readonly string[];
}

/** The vectors of a segment as plain data. */
export type VectorData = Pick<SegmentData, keyof VectorColumn | 'named' | 'multi' | 'sparse'>;

interface Fields {
  readonly unnamed: VectorField;
  readonly named: ReadonlyMap<string, VectorField>;
  readonly multi: ReadonlyMap<string, MultiField>;
  readonly sparse: ReadonlyMap<string, SparseField>;
}

export class SegmentVectors implements Fields {
  readonly unnamed: VectorField;
  readonly named: ReadonlyMap<string, VectorField>;
  readonly multi: ReadonlyMap<string, MultiField>;
  readonly sparse: ReadonlyMap<string, SparseField>;

  /** @param encoder encodes rows as they arrive; null for no codes. */
  static createActive(
    { dimension, named = new Map(), multi = new Map(), sparse = [] }: VectorShapes,
    encoder: RowEncoder | null,
  ): SegmentVectors {
    const create = (width: number, isNamed: boolean) =>
      VectorField.createActive(width, { isNamed, encoder });
    return new SegmentVectors({
      unnamed: create(dimension, false),
      named: mapValues(named, (width) => create(width, true)),
      multi: mapValues(multi, (width) => MultiField.createActive(width)),
      sparse: new Map(sparse.map((name) => [name, SparseField.createActive()])),
    });
  }

  /** Over the arrays of the data. */
  static fromData(data: VectorData & Pick<SegmentData, 'rowCount'>): SegmentVectors {
    const { named, multi, sparse, rowCount } = data;
    return new SegmentVectors({
      unnamed: VectorField.fromColumn(data),
      named: new Map(named.map((column) => [column.name, VectorField.fromNamedColumn(column)])),
      multi: new Map(multi.map((column) => [column.name, new MultiField(column, rowCount)])),
      sparse: new Map(sparse.map((column) => [column.name, new SparseField(column, rowCount)])),
    });
  }

  private constructor({ unnamed, named, multi, sparse }: Fields) {
    this.unnamed = unnamed;
    this.named = named;
    this.multi = multi;
    this.sparse = sparse;
  }

  /** Of the vectors that rows have once; a row without a named vector has zeros in its place. */
  get rowBytes(): number {
    let valueCount = this.unnamed.dimension;
    for (const { dimension } of this.named.values()) valueCount += dimension;
    return valueCount * Float32Array.BYTES_PER_ELEMENT;
  }

  /** Bytes of the values of all rows. */
  dataBytes(rowCount: number): number {
    let byteCount = rowCount * this.rowBytes;
    for (const field of this.#lists()) byteCount += field.dataBytes;
    return byteCount;
  }

  /** What rows of a batch add to `dataBytes`. */
  bytesOf({ batch, from, count }: RowsToAppend): number {
    const { multi = [], sparse = [] } = batch;
    let byteCount = count * this.rowBytes;
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
    const staging = [...this.#fields()].map(([name, field]) => {
      const parts = placed.map((part) => ({ ...part, values: valuesIn(part.batch, name) }));
      return field.stage(parts, range, pool);
    });
    await whenAllEnded(staging);
  }

  /** Appends rows. Those that are staged have their values and codes in place already. */
  append(
    { batch, from, count, firstRow: first }: PlacedRows,
    { isStaged, rowsMax }: { readonly isStaged: boolean; readonly rowsMax: number },
  ): void {
    for (const [name, field] of this.#fields()) {
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

  /** Frees memory reserved for growth. */
  seal(rowCount: number): void {
    for (const [, field] of this.#fields()) field.seal(rowCount);
    for (const field of this.#lists()) field.seal();
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them. */
  moveTo(stored: SegmentVectors): void {
    this.unnamed.moveTo(stored.unnamed);
    for (const [name, field] of this.named) field.moveTo(stored.named.get(name)!);
    for (const [name, field] of this.multi) field.moveTo(stored.multi.get(name)!);
    for (const [name, field] of this.sparse) field.moveTo(stored.sparse.get(name)!);
  }

  /** Makes the codes of this encoder, unless there are such; without an encoder it drops the codes. */
  async encode(encoder: RowEncoder | null, rowCount: number): Promise<void> {
    for (const [, field] of this.#fields()) await field.encode(encoder, rowCount);
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(rowCount: number, file: ArrayBufferLike): number {
    let byteCount = 0;
    for (const [, field] of this.#fields()) byteCount += field.hostBytes(rowCount, file);
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
  *#fields(): Generator<readonly [string | null, VectorField]> {
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

function mapValues<Key, From, To>(
  map: ReadonlyMap<Key, From>,
  change: (value: From) => To,
): Map<Key, To> {
  return new Map([...map].map(([key, value]) => [key, change(value)]));
}
