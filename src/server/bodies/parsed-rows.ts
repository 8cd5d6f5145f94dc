// The rows of a body, or of a batch of a stream, as the task that parsed them returns them: columns
// for the log and fields for the segment.

import type { Limits } from '../../common/limits.js';
import type { FieldShapes, Utf8Column, VectorBatch } from '../../common/types.js';
import { hasAnyVector, itemWidth, type Named, rowsOfColumn } from '../../common/vectors.js';
import { arraysOf, fieldsOf, type ParsedMetadata } from './parsed-metadata.js';

export interface ParsedRows {
  /** Where all rows lack a vector it may be there all the same. */
  readonly batch: VectorBatch;
  readonly metadata: ParsedMetadata;
  /** Rows of the batch that must not be written together with those before them, ascending. */
  readonly cuts: readonly number[];
  /** Tells the batch from any other; only where the stream has an idempotency key. */
  readonly digest: string | undefined;
  /** The rows that have a text in place of the unnamed vector, ascending; they lack it. Absent for none. */
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

/** Whatever its kind; not the presence of dense vectors, which is small and in shared memory. */
function arraysOfColumn(column: Named): ArrayBufferView[] {
  return Object.values(column).filter((part) => ArrayBuffer.isView(part));
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
