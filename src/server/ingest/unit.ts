// A unit of a stream: rows that came together, are parsed at once and written atomically, unless an
// id comes twice in them.

import type { Utf8Column, VectorBatch } from '../../common/types.js';

/** Rows on their way from the body to the database. */
export interface StreamUnit {
  /** Row of the stream, from 0. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** As it came. */
  readonly byteCount: number;
  /** Once. Throws a refusal whose findings say which row of the stream they are about. */
  parse(): Promise<ParsedUnit>;
  /** When nobody reads what `parse` gave any more; not called after a failure. */
  release?(): void;
}

export interface ParsedUnit {
  readonly batch: VectorBatch;
  /** Rows of the batch that must not be written together with those before them, ascending. */
  readonly cuts: readonly number[];
  /** Tells the unit from any other; only where the stream has an idempotency key. */
  readonly digest: string | undefined;
}

export interface Piece {
  /** In the batch of its unit. */
  readonly firstRow: number;
  readonly batch: VectorBatch;
}

/** What is written at once: views of the batch. */
export function piecesOf({ batch, cuts }: ParsedUnit): Piece[] {
  if (cuts.length === 0) return [{ firstRow: 0, batch }];
  const starts = [0, ...cuts];
  return starts.map((from, i) => ({
    firstRow: from,
    batch: rowsOf(batch, from, starts[i + 1] ?? batch.count),
  }));
}

function rowsOf({ count, ids, values, metadata }: VectorBatch, from: number, to: number) {
  const dimension = values.length / count;
  return {
    count: to - from,
    ids: textsOf(ids, from, to),
    values: values.subarray(from * dimension, to * dimension),
    metadata: textsOf(metadata, from, to),
  };
}

function textsOf({ offsets, bytes }: Utf8Column, from: number, to: number): Utf8Column {
  return { offsets: offsets.subarray(from, to + 1), bytes };
}

function allBuffersOf({ ids, values, metadata }: VectorBatch): ArrayBufferLike[] {
  const views = [ids.offsets, ids.bytes, values, metadata.offsets, metadata.bytes];
  return [...new Set<ArrayBufferLike>(views.map(({ buffer }) => buffer))];
}

/** The buffers behind a batch that can move to another thread. */
export function buffersOf(batch: VectorBatch): ArrayBuffer[] {
  return allBuffersOf(batch).filter(
    (buffer): buffer is ArrayBuffer => buffer instanceof ArrayBuffer,
  );
}

export function bytesOf(batch: VectorBatch): number {
  return allBuffersOf(batch).reduce((sum, { byteLength }) => sum + byteLength, 0);
}
