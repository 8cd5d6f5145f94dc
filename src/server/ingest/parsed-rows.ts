// The rows of a body, or of a batch of a stream, as the task that parsed them returns them: columns
// for the log and fields for the segment.

import { bitmapOfFlags } from '../../common/bitmap.js';
import type { Limits } from '../../common/limits.js';
import type {
  NamedMulti,
  NamedSparse,
  NamedVectors,
  Utf8Column,
  VectorBatch,
} from '../../common/types.js';
import { type Named, rowsOfColumn, UNNAMED } from '../../common/vectors.js';
import { type CollectionShape, valuesPerRow } from '../../database/api.js';
import { arraysOf, fieldsOf, type ParsedMetadata } from './parsed-metadata.js';

/** Rows as they are parsed, with their vectors by kind. */
export interface ParsedBatch extends Omit<VectorBatch, 'vectors' | 'removed'> {
  /** Row-major [count, dimension] float32; empty in a collection without the unnamed vector. */
  readonly values: Float32Array;
  readonly named?: readonly NamedVectors[] | undefined;
  readonly sparse?: readonly NamedSparse[] | undefined;
  readonly multi?: readonly NamedMulti[] | undefined;
  /** Only of rows that change others. */
  readonly patched?: PatchedRows | undefined;
}

/** What rows leave as it is, and what they remove, when they change others. */
export interface PatchedRows {
  /** [count], 1 for rows that have the unnamed vector; the others have zeros, which are not written. */
  readonly hasValues: Uint8Array;
  readonly removed: ReadonlyMap<string, Uint8Array>;
}

export interface ParsedRows {
  readonly batch: ParsedBatch;
  readonly metadata: ParsedMetadata;
  /** Rows of the batch that must not be written together with those before them, ascending. */
  readonly cuts: readonly number[];
  /** Tells the batch from any other; only where the stream has an idempotency key. */
  readonly digest: string | undefined;
  /** The rows that have a text in place of a vector, ascending; their values are zeros. Absent for none. */
  readonly texts?: readonly RowText[] | undefined;
}

export interface RowText {
  /** In the parsed batch. */
  readonly row: number;
  readonly text: string;
}

/** The values of one atomic write of a stream: enough to write at full speed, and little to hold in memory. */
const WRITE_VALUE_BYTES_MAX = 8_000_000;
/** A patch writes what its rows keep, too; of lists of values that can be a hundred times as much as it has. */
const LISTS_PATCHED_MAX = 100;

/** How many rows of a stream are one write at most. It depends on nothing that a write changes. */
export function writeRowsMax(
  shape: CollectionShape,
  { isPatch, limits }: { isPatch: boolean; limits: Pick<Limits, 'batchRowsMax'> },
): number {
  const hasLists = (shape.multiVectors ?? shape.sparseVectors) !== undefined;
  return Math.min(
    limits.batchRowsMax,
    Math.max(1, Math.floor(WRITE_VALUE_BYTES_MAX / (4 * valuesPerRow(shape)))),
    isPatch && hasLists ? LISTS_PATCHED_MAX : limits.batchRowsMax,
  );
}

/** The rows of one atomic write. */
export interface AtomicRows {
  /** In the parsed batch. */
  readonly firstRow: number;
  readonly batch: VectorBatch;
}

/** The atomic writes of a batch. */
export function toAtomicRows(rows: ParsedRows): AtomicRows[] {
  const starts = [0, ...rows.cuts];
  return starts.map((from, i) => ({
    firstRow: from,
    batch: toBatch(rows, from, starts[i + 1] ?? rows.batch.count),
  }));
}

/** The rows `from..to`, all by default, as the database takes them: views of the parsed columns. */
export function toBatch(
  { batch, metadata: parsed }: ParsedRows,
  from = 0,
  to = batch.count,
): VectorBatch {
  const { count, ids, values, metadata, ifSequences, expiresAtMs, named, multi, sparse } = batch;
  const { patched } = batch;
  const unnamed: NamedVectors = {
    name: UNNAMED,
    dimension: values.length / count,
    values,
    presence: patched?.hasValues ?? new Uint8Array(count).fill(1),
  };
  const dense = [...(values.length === 0 ? [] : [unnamed]), ...(named ?? [])];
  const vectors: Named[] = [
    ...dense
      .map((column) => namedRows(column, from, to))
      .filter(({ presence }) => presence.includes(1))
      .map(({ presence, ...column }) => {
        return { kind: 'dense' as const, ...column, presence: bitmapOfFlags(presence) };
      }),
    ...(multi ?? []).map((column) => rowsOfColumn(column, from, to)),
    ...(sparse ?? []).map((column) => rowsOfColumn(column, from, to)),
  ];
  return {
    count: to - from,
    ids: textsOf(ids, from, to),
    metadata: textsOf(metadata, from, to),
    fields: fieldsOf(parsed, from),
    ifSequences: ifSequences?.subarray(from, to),
    expiresAtMs: expiresAtMs?.subarray(from, to),
    vectors,
    removed:
      patched &&
      new Map(Array.from(patched.removed, ([name, rows]) => [name, rows.subarray(from, to)])),
  };
}

function namedRows(vectors: NamedVectors, from: number, to: number): NamedVectors {
  const { dimension, values, presence } = vectors;
  return {
    ...vectors,
    values: values.subarray(from * dimension, to * dimension),
    presence: presence.subarray(from, to),
  };
}

function textsOf({ offsets, bytes }: Utf8Column, from: number, to: number): Utf8Column {
  return { offsets: offsets.subarray(from, to + 1), bytes };
}

type ParsedColumns = Pick<ParsedRows, 'batch' | 'metadata'>;

function allBuffersOf({ batch, metadata: parsed }: ParsedColumns): ArrayBufferLike[] {
  const { ids, values, metadata, ifSequences, expiresAtMs, named = [], multi = [] } = batch;
  const { sparse = [] } = batch;
  const columns = [ids.offsets, ids.bytes, values, metadata.offsets, metadata.bytes];
  const optional = [ifSequences, expiresAtMs].filter((column) => column !== undefined);
  const vectors = [
    ...named.flatMap((column) => [column.values, column.presence]),
    ...multi.flatMap((column) => [column.values, column.starts]),
    ...sparse.flatMap((column) => [column.starts, column.indices, column.values]),
  ];
  const views: readonly ArrayBufferView[] = [
    ...columns,
    ...optional,
    ...vectors,
    ...arraysOf(parsed),
  ];
  return [...new Set<ArrayBufferLike>(views.map(({ buffer }) => buffer))];
}

/** The buffers behind parsed rows that can move to another thread. */
export function buffersOf(rows: ParsedColumns): ArrayBuffer[] {
  return allBuffersOf(rows).filter(
    (buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer,
  );
}

/** The bytes of the buffers behind parsed rows. */
export function bytesOf(rows: ParsedColumns): number {
  return allBuffersOf(rows).reduce((sum, { byteLength }) => sum + byteLength, 0);
}
