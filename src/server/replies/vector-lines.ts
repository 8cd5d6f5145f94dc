// Vectors as lines of JSON, as the write of vectors takes them. What is more than a moment's work is
// done in the pool, several pieces at a time.

import type { RowChunk } from '../../database/bulk/scan.js';
import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import type { Pay } from './sent-rows.js';

interface LinesInput {
  readonly piece: RowChunk;
  readonly dimension: number;
}

/** What is shorter is written at once: about a millisecond. */
const INLINE_BYTES_MAX = 32 * 1024;

/** Pieces that are written at once, or wait to be sent: more threads than this are left to others. */
const PIECES_AHEAD_MAX = 4;

export const writeLinesTask: Task<LinesInput, Uint8Array> = {
  name: 'http.writeLines',
  run: ({ piece, dimension }) => linesOf(piece, dimension),
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

export async function* vectorLines(
  pieces: Iterable<RowChunk>,
  dimension: number,
  { pool, pay }: { pool: WorkerPool; pay: Pay },
): AsyncGenerator<Uint8Array> {
  const ahead = Math.min(pool.threadCount, PIECES_AHEAD_MAX);
  const waiting: Promise<Uint8Array>[] = [];
  // Nothing has been sent of the first one: it may be refused.
  let mayBeRefused = true;
  for (const piece of pieces) {
    await pay(piece.count);
    const input = { piece, dimension };
    const isShort = bytesOf(piece) <= INLINE_BYTES_MAX;
    const writing = isShort
      ? Promise.resolve(linesOf(piece, dimension))
      : pool.run(writeLinesTask, input, { mayBeRefused });
    mayBeRefused = false;
    // Whoever takes it learns of a failure; until then nobody does.
    writing.catch(() => {});
    waiting.push(writing);
    if (waiting.length >= ahead) yield await waiting.shift()!;
  }
  for (const writing of waiting) yield await writing;
}

function linesOf({ count, ids, values, metadata }: RowChunk, dimension: number): Uint8Array {
  const textBytes = spanOf(ids, count) + (metadata === null ? 0 : spanOf(metadata, count));
  // Embeddings take 10 to 11 characters a number.
  const json = new JsonWriter(textBytes + count * (40 + (values === null ? 0 : dimension * 11)));
  for (let row = 0; row < count; row++) {
    json.ascii('{"id":');
    json.text(ids, row);
    if (values !== null) {
      json.ascii(',"values":');
      json.vector(values, row * dimension, (row + 1) * dimension);
    }
    if (metadata !== null) {
      json.ascii(',"metadata":');
      json.document(metadata, row);
    }
    json.ascii('}\n');
  }
  return json.written();
}

function bytesOf({ count, ids, values, metadata }: RowChunk): number {
  const textBytes = spanOf(ids, count) + (metadata === null ? 0 : spanOf(metadata, count));
  return textBytes + (values?.byteLength ?? 0);
}

function spanOf({ offsets }: RowChunk['ids'], count: number): number {
  return offsets[count]! - offsets[0]!;
}
