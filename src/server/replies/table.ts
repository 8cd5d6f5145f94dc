// A reply with rows, independent of its format: a description of its columns, and batches of rows. Each format is a
// file with a `TableFormat`.

import type { ColumnToWrite, FieldToWrite } from '../../formats/arrow/ipc-writer.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { Admit } from './sent-rows.js';

export interface TableField extends FieldToWrite {
  /** The path of the member in the JSON of a row; by default the name. */
  readonly path?: readonly string[];
}

/** A field, and how to get its column from a chunk of rows. */
export interface TableColumn<Chunk> extends TableField {
  readonly of: (chunk: Chunk) => ColumnToWrite;
}

export interface Batch {
  readonly count: number;
  /** In the order of the fields. */
  readonly columns: readonly ColumnToWrite[];
  /** Metadata of the batch, for formats that support it. */
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
  /** The extension of file names. */
  readonly extension: string;
  /** Bytes that are collected before they are sent; by default batches are sent immediately. */
  readonly gatheredBytes?: number;
  /** The maximum size of the columns of a chunk; by default the source decides. */
  readonly chunkBytesMax?: number;
  /** Whether the format has columns, over which metadata can be distributed. */
  readonly hasColumns: boolean;
  /** Whether the format supports multi-vectors and sparse vectors. */
  readonly hasVectorLists: boolean;
  /** `pool` writes long texts; null for the calling thread. */
  readonly write: (table: Table, pool: WorkerPool | null) => AsyncGenerator<Uint8Array>;
}

/** Creates a table from the chunks of a source. */
export function tableOf<Chunk extends { readonly count: number }>(
  columns: readonly TableColumn<Chunk>[],
  chunks: Iterable<Chunk> | AsyncIterable<Chunk>,
  {
    metadata,
    admit,
    metadataOf,
  }: {
    readonly metadata?: ReadonlyMap<string, string>;
    /** Called before each chunk; absent if the source admits its rows. */
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

/** The size of the values of a column. */
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
