// A reply with rows: its columns, described once for all formats, and the batches that it is made of. Each
// format is one file with a `TableFormat`.

import type { ColumnToWrite, FieldToWrite } from '../../formats/arrow/ipc-writer.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { Admit } from './sent-rows.js';

export interface TableField extends FieldToWrite {
  /** The names of the members that lead to it in the JSON of a row; absent for its own name. */
  readonly path?: readonly string[];
}

/** A field, and where its values are in a chunk of rows. */
export interface TableColumn<Chunk> extends TableField {
  readonly of: (chunk: Chunk) => ColumnToWrite;
}

export interface Batch {
  readonly count: number;
  /** In the order of the fields. */
  readonly columns: readonly ColumnToWrite[];
  /** What a format that has a place for it says beside the rows. */
  readonly metadata?: Map<string, string> | undefined;
}

export interface Table {
  readonly fields: readonly TableField[];
  readonly metadata: ReadonlyMap<string, string>;
  readonly batches: AsyncIterable<Batch>;
}

export interface TableFormat {
  /** The content type. */
  readonly type: string;
  /** What the name of a file ends with. */
  readonly extension: string;
  /** Bytes that are gathered from batches before they are sent; absent: batches are sent as they come. */
  readonly gatheredBytes?: number;
  /** Bytes of the columns of a chunk; absent: as many as the source likes. */
  readonly chunkBytesMax?: number;
  /** Whether it has columns, so that metadata may be in several. */
  readonly hasColumns: boolean;
  /** Whether it has multi-vectors and sparse vectors. */
  readonly hasVectorLists: boolean;
  /** `pool`: where long texts are made; null for the calling thread. */
  readonly write: (table: Table, pool: WorkerPool | null) => AsyncGenerator<Uint8Array>;
}

/** A table of the chunks of a source, each with its number of rows. */
export function tableOf<Chunk extends { readonly count: number }>(
  columns: readonly TableColumn<Chunk>[],
  chunks: Iterable<Chunk> | AsyncIterable<Chunk>,
  {
    metadata,
    admit,
    metadataOf,
  }: {
    readonly metadata?: ReadonlyMap<string, string>;
    /** Called before each chunk; absent: its rows were admitted before. */
    readonly admit?: Admit;
    readonly metadataOf?: (chunk: Chunk) => Map<string, string>;
  },
): Table {
  async function* batches(): AsyncGenerator<Batch> {
    for await (const chunk of chunks) {
      await admit?.(chunk.count);
      yield {
        count: chunk.count,
        columns: columns.map((column) => column.of(chunk)),
        metadata: metadataOf?.(chunk),
      };
    }
  }
  const fields = columns.map(({ of: _, ...field }) => field);
  return { fields, metadata: metadata ?? new Map(), batches: batches() };
}

/** The bytes of the values of a column. */
export function columnBytes(column: ColumnToWrite, count: number): number {
  if ('leaf' in column) {
    const { leaf } = column;
    if ('words' in leaf) return leaf.words.byteLength;
    return 'offsets' in leaf ? leaf.offsets[count]! - leaf.offsets[0]! : leaf.byteLength;
  }
  if ('items' in column) {
    return column.starts.byteLength + columnBytes(column.items, column.starts[count]!);
  }
  if ('vectors' in column) return column.vectors.byteLength;
  if ('elements' in column) return (column.starts[count]! - column.starts[0]!) * 4;
  const { starts, dimension } = column.multi;
  return (starts[count]! - starts[0]!) * dimension * 4;
}

export function batchBytes({ columns, count }: Batch): number {
  return columns.reduce((sum, column) => sum + columnBytes(column, count), 0);
}
