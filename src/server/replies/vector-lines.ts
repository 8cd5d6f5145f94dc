// A scan as NDJSON in the form that the write of vectors takes. Long chunks are written in the pool,
// several at a time.

import { hasBit } from '../../common/bitmap.js';
import type { NamedMulti, NamedSparse } from '../../common/types.js';
import { bytesOfRows, valuesOfRows } from '../../common/vectors.js';
import type { RowChunk } from '../../database/bulk/scan.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { Admit } from './sent-rows.js';
import { type SplitVectors, splitVectors } from './split-vectors.js';

interface LinesInput {
  readonly chunk: RowChunk;
  readonly dimension: number | null;
}

/** Shorter chunks are written on the event loop, in about a millisecond. */
const INLINE_BYTES_MAX = 32 * 1024;

/** The chunks that are being written or wait to be sent; more threads are left to other requests. */
const CHUNKS_AHEAD_MAX = 4;

export const writeLinesTask: Task<LinesInput, Uint8Array> = {
  name: 'replies.writeLines',
  run: ({ chunk, dimension }) => linesOf(chunk, dimension),
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

export async function* vectorLines(
  chunks: Iterable<RowChunk>,
  dimension: number | null,
  { pool, admit }: { pool: WorkerPool; admit: Admit },
): AsyncGenerator<Uint8Array> {
  const ahead = Math.min(pool.threadCount, CHUNKS_AHEAD_MAX);
  const waiting: Promise<Uint8Array>[] = [];
  // Only the first chunk may be refused: the reply has begun with the others.
  let mayBeRefused = true;
  for (const chunk of chunks) {
    await admit(chunk.count);
    const input = { chunk, dimension };
    const isShort = bytesOf(chunk) <= INLINE_BYTES_MAX;
    const writing = isShort
      ? Promise.resolve(linesOf(chunk, dimension))
      : pool.run(writeLinesTask, input, { mayBeRefused });
    mayBeRefused = false;
    // Awaited below, unless an earlier chunk fails.
    writing.catch(() => {});
    waiting.push(writing);
    if (waiting.length >= ahead) yield await waiting.shift()!;
  }
  for (const writing of waiting) yield await writing;
}

function linesOf(chunk: RowChunk, dimension: number | null): Uint8Array {
  const { count, ids, metadata } = chunk;
  const split = splitVectors(chunk);
  const { values, named, multi, sparse } = split;
  const textBytes = spanOf(ids, count) + (metadata === null ? 0 : spanOf(metadata, count));
  // A number of an embedding takes 10 to 11 characters.
  const namedCount = named.reduce((sum, column) => sum + column.dimension, 0);
  const valueCount = namedCount + (values === null ? 0 : (dimension ?? 0));
  const multiCount = multi.reduce((sum, column) => sum + multiValues(column, count).length, 0);
  const json = new JsonWriter(textBytes + count * (40 + valueCount * 11) + multiCount * 12);
  for (let row = 0; row < count; row++) {
    json.ascii('{"id":');
    json.text(ids, row);
    if (values !== null && dimension !== null) {
      json.ascii(',"values":');
      json.vector(values, row * dimension, (row + 1) * dimension);
    }
    if (named.length + multi.length > 0) addNamed(json, split, row);
    if (sparse.length > 0) addSparse(json, sparse, row);
    if (metadata !== null) {
      json.ascii(',"metadata":');
      json.document(metadata, row);
    }
    json.ascii('}\n');
  }
  return json.written();
}

function multiValues(column: NamedMulti, count: number): Float32Array {
  return valuesOfRows(column, 0, count);
}

function addNamed(json: JsonWriter, { named, multi }: SplitVectors, row: number): void {
  json.ascii(',"vectors":{');
  let separator = '';
  for (const { name, dimension, vectors, presence } of named) {
    if (!hasBit(presence, row)) continue;
    json.ascii(`${separator}"${name}":`);
    json.vector(vectors, row * dimension, (row + 1) * dimension);
    separator = ',';
  }
  for (const { name, dimension, starts, values } of multi) {
    const [first, end] = [starts[row]!, starts[row + 1]!];
    if (first === end) continue;
    json.ascii(`${separator}"${name}":`);
    for (let i = first; i < end; i++) {
      json.ascii(i === first ? '[' : ',');
      json.vector(values, i * dimension, (i + 1) * dimension);
    }
    json.ascii(']');
    separator = ',';
  }
  json.ascii('}');
}

function addSparse(json: JsonWriter, sparse: readonly NamedSparse[], row: number): void {
  json.ascii(',"sparse_vectors":{');
  let separator = '';
  for (const { name, starts, indices, values } of sparse) {
    const [start, end] = [starts[row]!, starts[row + 1]!];
    if (start === end) continue;
    json.ascii(
      `${separator}"${name}":{"indices":[${indices.subarray(start, end).join()}],"values":`,
    );
    json.vector(values, start, end);
    json.ascii('}');
    separator = ',';
  }
  json.ascii('}');
}

function bytesOf({ count, ids, vectors, metadata }: RowChunk): number {
  const textBytes = spanOf(ids, count) + (metadata === null ? 0 : spanOf(metadata, count));
  return vectors.reduce((sum, column) => sum + bytesOfRows(column, 0, count), textBytes);
}

function spanOf({ offsets }: RowChunk['ids'], count: number): number {
  return offsets[count]! - offsets[0]!;
}
