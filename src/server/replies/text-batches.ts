// Writes the batches of a table as text: long ones in the pool, several at a time.

import type { Task, WorkerPool } from '../../platform/pool.js';
import { type Batch, batchBytes, type Table, type TableField } from './table.js';

export interface LinesInput {
  readonly fields: readonly TableField[];
  readonly batch: Batch;
}

/** An estimate per row for names or separators and short values. */
export const LINE_BYTES = 64;

/** The size of columns per batch: as text, which is written as a whole, values take three times as much. */
export const TEXT_CHUNK_BYTES = 1024 * 1024;

/** Shorter batches are written on the event loop, in about a millisecond. */
const INLINE_BYTES_MAX = 32 * 1024;

/** The maximum number of batches in progress, which leaves threads to other requests. */
const BATCHES_AHEAD_MAX = 4;

export async function* textOfBatches(
  { fields, batches }: Table,
  task: Task<LinesInput, Uint8Array>,
  pool: WorkerPool | null,
): AsyncGenerator<Uint8Array> {
  const ahead = Math.min(pool?.threadCount ?? 1, BATCHES_AHEAD_MAX);
  const waiting: Promise<Uint8Array>[] = [];
  // Only the first batch may be refused, since then the reply has begun.
  let mayBeRefused = true;
  for await (const batch of batches) {
    const input = { fields, batch };
    const writing =
      pool === null || batchBytes(batch) <= INLINE_BYTES_MAX
        ? Promise.resolve(task.run(input))
        : pool.run(task, input, { mayBeRefused });
    mayBeRefused = false;
    // Awaited below, unless an earlier batch fails.
    writing.catch(() => {});
    waiting.push(writing);
    if (waiting.length >= ahead) yield await waiting.shift()!;
  }
  for (const writing of waiting) yield await writing;
}
