// A table as NDJSON, a line for each row. Long batches are written in the pool, several at a time.

import { JsonWriter } from '../../formats/json/json-writer.js';
import type { Task, WorkerPool } from '../../platform/pool.js';
import { NDJSON } from '../media-types.js';
import { estimateBytes, rowWriter } from './row-json.js';
import { type Batch, batchBytes, type Table, type TableField, type TableFormat } from './table.js';

interface LinesInput {
  readonly fields: readonly TableField[];
  readonly batch: Batch;
}

/** The names of the members, and short values. */
const LINE_BYTES = 64;

/** Shorter batches are written on the event loop, in about a millisecond. */
const INLINE_BYTES_MAX = 32 * 1024;

/** The batches that are being written or wait to be sent; more threads are left to other requests. */
const BATCHES_AHEAD_MAX = 4;

export const NDJSON_TABLE: TableFormat = {
  type: NDJSON,
  extension: 'ndjson',
  workBytes: 12 * 1024 * 1024,
  /** Values take three times as many bytes as text, and a batch of text is made at once. */
  chunkBytesMax: 1024 * 1024,
  hasColumns: false,
  hasVectorLists: true,
  write: ndjsonLines,
};

export const writeLinesTask: Task<LinesInput, Uint8Array> = {
  name: 'replies.writeLines',
  run: linesOf,
  transfer: ({ buffer }) => [buffer as ArrayBuffer],
};

export async function* ndjsonLines(
  { fields, batches }: Table,
  pool: WorkerPool | null,
): AsyncGenerator<Uint8Array> {
  const ahead = Math.min(pool?.threadCount ?? 1, BATCHES_AHEAD_MAX);
  const waiting: Promise<Uint8Array>[] = [];
  // Only the first batch may be refused: the reply has begun with the others.
  let mayBeRefused = true;
  for await (const batch of batches) {
    const input = { fields, batch };
    const writing =
      pool === null || batchBytes(batch) <= INLINE_BYTES_MAX
        ? Promise.resolve(linesOf(input))
        : pool.run(writeLinesTask, input, { mayBeRefused });
    mayBeRefused = false;
    // Awaited below, unless an earlier batch fails.
    writing.catch(() => {});
    waiting.push(writing);
    if (waiting.length >= ahead) yield await waiting.shift()!;
  }
  for (const writing of waiting) yield await writing;
}

function linesOf({ fields, batch: { columns, count } }: LinesInput): Uint8Array {
  const json = new JsonWriter(estimateBytes(columns, count) + count * LINE_BYTES);
  const writeRow = rowWriter(fields, columns);
  for (let row = 0; row < count; row++) {
    json.ascii('{');
    writeRow(json, row);
    json.ascii('}\n');
  }
  return json.written();
}
