// The vectors of the rows of a segment, by column (vector-names.ts): those that any of the rows has brought. That of
// the unnamed vector has the name ''.

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
import type { NewRows, RowsToAppend, StoredVectors, VectorField } from './vector-field.js';

export type PlacedRows = RowsToAppend & NewRows;

export class SegmentVectors {
  readonly #fields = new Map<string, VectorField>();
  /** Encodes rows as they arrive; null for no codes, and when the segment is sealed. */
  readonly #encoder: RowEncoder | null;
  /** Fields that no row has yet, with values of rows that will be appended next. */
  readonly #staged = new Map<string, VectorField>();

  constructor(encoder: RowEncoder | null) {
    this.#encoder = encoder;
  }

  /** Over the arrays of the columns, which have `rowCount` rows. */
  static fromColumns(columns: readonly StoredVectors[], rowCount: number): SegmentVectors {
    const vectors = new SegmentVectors(null);
    for (const column of columns) {
      vectors.#fields.set(column.name, fieldOfColumn(column, rowCount));
    }
    return vectors;
  }

  get fields(): ReadonlyMap<string, VectorField> {
    return this.#fields;
  }

  /** Bytes that each row takes, also with further vectors, of which there may be some already. */
  rowBytesWith(others: Iterable<Named<ColumnSpec>>): number {
    let byteCount = 0;
    for (const { spec } of this.#fields.values()) byteCount += rowBytesOf(spec);
    for (const spec of others) if (!this.#fields.has(spec.name)) byteCount += rowBytesOf(spec);
    return byteCount;
  }

  /** Bytes of the vectors of all rows. */
  get dataBytes(): number {
    let byteCount = 0;
    for (const field of this.#fields.values()) byteCount += field.dataBytes;
    return byteCount;
  }

  /** Bytes of sparse vectors and multi-vectors, of which rows have any number of values. */
  get listBytes(): number {
    let byteCount = 0;
    for (const field of this.#fields.values()) if (isList(field.spec)) byteCount += field.dataBytes;
    return byteCount;
  }

  /** What rows of a batch add to `dataBytes`, also for the rows before them, which lack the vectors that are new. */
  bytesOf({ batch, from, count }: RowsToAppend, rowCount: number): number {
    const rowBytes = this.rowBytesWith(batch.vectors);
    let byteCount = count * rowBytes + rowCount * (rowBytes - this.rowBytesWith([]));
    for (const column of batch.vectors) {
      if (isList(column)) byteCount += bytesOfRows(column, from, from + count);
    }
    return byteCount;
  }

  /** Copies the values of rows that will be appended next, and encodes them, in the pool. */
  async stage(
    placed: readonly PlacedRows[],
    range: { readonly first: number; readonly rowCount: number; readonly rowsMax: number },
    pool: WorkerPool,
  ): Promise<void> {
    this.#staged.clear();
    for (const column of placed.flatMap(({ batch }) => batch.vectors)) {
      const { name } = column;
      if (this.#fields.has(name) || this.#staged.has(name)) continue;
      this.#staged.set(name, createField(column, range.first, this.#encoder));
    }
    const staging = [...this.#fields, ...this.#staged].map(([name, field]) => {
      const parts = placed.map(({ batch, ...rows }) => {
        return { column: columnIn(batch, name), ...rows };
      });
      return field.stage(parts, range, pool);
    });
    await whenAllEnded(staging);
  }

  /** Appends rows. Those that are staged have their values and codes in place already. */
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
      this.#fields.set(name, staged ?? createField(column, first, this.#encoder));
      this.#staged.delete(name);
    }
    for (const [name, field] of this.#fields) {
      field.append(columnIn(batch, name), rows, options);
    }
  }

  /** Forgets the vectors of columns. Returns those that there were. */
  drop(isDropped: (column: string) => boolean): ReadonlyMap<string, VectorField> {
    for (const column of this.#staged.keys()) if (isDropped(column)) this.#staged.delete(column);
    const dropped = new Map([...this.#fields].filter(([column]) => isDropped(column)));
    for (const column of dropped.keys()) this.#fields.delete(column);
    return dropped;
  }

  /** Frees memory reserved for growth. */
  seal(): void {
    this.#staged.clear();
    for (const field of this.#fields.values()) field.seal();
  }

  /** Continues with the arrays of `stored`, the same vectors as a file has them, or more: some may have been dropped. */
  moveTo(stored: SegmentVectors): void {
    for (const [name, field] of this.#fields) field.moveTo(stored.#fields.get(name)!);
  }

  /** Makes the codes of this encoder, unless there are such; without an encoder it drops the codes. */
  async encode(encoder: RowEncoder | null): Promise<void> {
    for (const field of this.#fields.values()) await field.encode(encoder);
  }

  /** Bytes that `file`, the buffer of the other columns if they are from a file, does not have. */
  hostBytes(file: ArrayBufferLike): number {
    let byteCount = 0;
    for (const field of this.#fields.values()) byteCount += field.hostBytes(file);
    return byteCount;
  }

  columns(): readonly StoredVectors[] {
    return Array.from(this.#fields, ([name, field]) => ({ name, ...field.column() }));
  }
}

function isList({ kind }: ColumnSpec): boolean {
  return kind !== 'dense';
}

/** Undefined where none of the batch has the vector. */
function columnIn({ vectors }: VectorBatch, name: string): VectorColumn | undefined {
  return vectors.find((column) => column.name === name);
}

/** A field that the first `rowCount` rows lack. */
function createField(spec: ColumnSpec, rowCount: number, encoder: RowEncoder | null): VectorField {
  return spec.kind === 'dense'
    ? DenseField.create(spec, rowCount, encoder)
    : ListField.create(spec, rowCount);
}

/** A sealed field over the arrays of a column of `rowCount` rows. */
function fieldOfColumn(column: StoredVectors, rowCount: number): VectorField {
  return column.kind === 'dense'
    ? new DenseField(column, rowCount)
    : new ListField(column, rowCount);
}
