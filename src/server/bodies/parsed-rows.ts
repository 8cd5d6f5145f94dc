// The rows of a body or of a batch of a stream, as returned by the task that parsed them: columns for the log and
// metadata fields for the segment.

import type { Limits } from '../../common/limits.js';
import type { FieldShapes, Utf8Column, VectorBatch } from '../../common/types.js';
import { hasAnyVector, itemWidth, type Named, rowsOfColumn } from '../../common/vectors.js';
import { arraysOf, fieldsOf, type ParsedMetadata } from './parsed-metadata.js';

export interface ParsedRows {
  /** May contain a column of a vector that no row has. */
  readonly batch: VectorBatch;
  readonly metadata: ParsedMetadata;
  /** The rows at which a new atomic write must start, ascending. */
  readonly cuts: readonly number[];
  /** Identifies the content of the batch; only for streams with an idempotency key. */
  readonly digest: string | undefined;
  /** The rows with a text in place of the unnamed vector, which is missing in the batch. Ascending; absent for none. */
  readonly texts?: readonly RowText[] | undefined;
}

export interface RowText {
  /** The index in the parsed batch. */
  readonly row: number;
  readonly text: string;
}

/** The size of one atomic write of a stream: enough for full speed, and little to hold in memory. */
const WRITE_VALUE_BYTES_MAX = 8_000_000;
/** A patch also rewrites what its rows keep, which can be a hundred times the patch for lists of values. */
const LISTS_PATCHED_MAX = 100;

/** The maximum number of rows of one write of a stream. It depends on nothing that a write changes. */
export function writeRowsMax(
  shapes: FieldShapes,
  { isPatch, limits }: { isPatch: boolean; limits: Pick<Limits, 'batchRowsMax'> },
): number {
  const dense = Object.values(shapes).filter(({ kind }) => kind === 'dense');
  const hasLists = dense.length < Object.keys(shapes).length;
  const valuesPerRow = dense.reduce((sum, shape) => sum + itemWidth(shape), 0);
  return Math.min(
    limits.batchRowsMax,
    Math.max(1, Math.floor(WRITE_VALUE_BYTES_MAX / (4 * valuesPerRow))),
    isPatch && hasLists ? LISTS_PATCHED_MAX : limits.batchRowsMax,
  );
}

/** The rows of one atomic write. */
export interface AtomicRows {
  /** The index of the first row in the parsed batch. */
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

/** The rows `from..to` (by default all) as a batch for the database, whose columns are views. */
export function toBatch(
  { batch, metadata: parsed }: ParsedRows,
  from = 0,
  to = batch.count,
): VectorBatch {
  const { ids, metadata, ifSequences, expiresAtMs, removed } = batch;
  const vectors = batch.vectors.map((column) => rowsOfColumn(column, from, to));
  return {
    count: to - from,
    ids: textsOf(ids, from, to),
    metadata: textsOf(metadata, from, to),
    fields: fieldsOf(parsed, from),
    ifSequences: ifSequences?.subarray(from, to),
    expiresAtMs: expiresAtMs?.subarray(from, to),
    vectors: vectors.filter((column) => hasAnyVector(column, to - from)),
    removed:
      removed && new Map(Array.from(removed, ([name, rows]) => [name, rows.subarray(from, to)])),
  };
}

function textsOf({ offsets, bytes }: Utf8Column, from: number, to: number): Utf8Column {
  return { offsets: offsets.subarray(from, to + 1), bytes };
}

type ParsedColumns = Pick<ParsedRows, 'batch' | 'metadata'>;

function allBuffersOf({ batch, metadata: parsed }: ParsedColumns): ArrayBufferLike[] {
  const { ids, metadata, ifSequences, expiresAtMs } = batch;
  const optional = [ifSequences, expiresAtMs].filter((column) => column !== undefined);
  const views: readonly ArrayBufferView[] = [
    ids.offsets,
    ids.bytes,
    metadata.offsets,
    metadata.bytes,
    ...optional,
    ...batch.vectors.flatMap(arraysOfColumn),
    ...arraysOf(parsed),
  ];
  return [...new Set<ArrayBufferLike>(views.map(({ buffer }) => buffer))];
}

/** The arrays of a column of any kind, except the presence of dense vectors, which is small and in shared memory. */
function arraysOfColumn(column: Named): ArrayBufferView[] {
  return Object.values(column).filter((part) => ArrayBuffer.isView(part));
}

/** The buffers of parsed rows that can be transferred to another thread. */
export function buffersOf(rows: ParsedColumns): ArrayBuffer[] {
  return allBuffersOf(rows).filter(
    (buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer,
  );
}

/** The total size of the buffers of parsed rows. */
export function bytesOf(rows: ParsedColumns): number {
  return allBuffersOf(rows).reduce((sum, { byteLength }) => sum + byteLength, 0);
}
