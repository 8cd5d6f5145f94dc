// Sends the batches of a file one after another, while the next one is being read. Waits while the server is
// unavailable, and resends unacknowledged batches under the same idempotency key.

import { SagittaClientError } from '@sagitta/client';
import type { BadRow } from '../../../../../src/readers/reader-options.js';
import type { RejectedRow } from './import-batches.js';
import type { EncodedImportBatch, ImportReader } from './import-reader.js';

/** The progress of an import, from which it can be continued. */
export interface BatchProgress {
  /** The number of rows at the beginning of the file that have been written or skipped. */
  readonly endRow: number;
  /** The number of finished batches. */
  readonly batch: number;
  readonly writtenCount: number;
  readonly badCount: number;
}

export const FIRST_PROGRESS: BatchProgress = { endRow: 0, batch: 0, writtenCount: 0, badCount: 0 };

export type ImportEvent =
  | {
      readonly kind: 'progress';
      readonly progress: BatchProgress;
      readonly badRows: readonly BadRow[];
      readonly share: number;
    }
  /** The server cannot be reached or is busy; the batch will be resent. */
  | { readonly kind: 'waiting'; readonly error: SagittaClientError };

export interface ImportTarget {
  /** Writes the bytes of an Arrow stream. Throws SagittaClientError. */
  write(bytes: Uint8Array, options: { readonly idempotencyKey: string }): Promise<unknown>;
  /** Resolves after `ms`, or rejects when the import is stopped. */
  wait(ms: number): Promise<void>;
}

export interface RunOptions {
  readonly progress: BatchProgress;
  /** The prefix of the idempotency keys; identifies the file, the plan and this import. */
  readonly key: string;
  readonly skipsBadRows: boolean;
  readonly onEvent: (event: ImportEvent) => void;
}

/** A row is bad, and the import must stop at bad rows. */
export class BadRowError extends Error {
  readonly badRow: BadRow;

  constructor(badRow: BadRow) {
    super(`row ${badRow.row + 1}: ${badRow.problem}`);
    this.badRow = badRow;
  }
}

const WAIT_MS_MIN = 1_000;
const WAIT_MS_MAX = 15_000;

/**
 * Resolves when every row has been written or skipped. Throws BadRowError, ReadError if the file cannot be read, and
 * SagittaClientError for errors that waiting cannot resolve.
 */
export async function runImport(
  reader: ImportReader,
  target: ImportTarget,
  options: RunOptions,
): Promise<BatchProgress> {
  let { progress } = options;
  let batch = await reader.next();
  while (batch !== undefined) {
    const sent = await sendBatch(reader, target, batch, progress, options);
    const [firstBadRow] = sent.badRows;
    const stopsHere = firstBadRow !== undefined && !options.skipsBadRows;
    // The row at which the import stops is not done, because the batch ends before it.
    const badRows = stopsHere ? [] : sent.badRows;
    progress = {
      endRow: batch.endRow,
      batch: progress.batch + 1,
      writtenCount: progress.writtenCount + sent.writtenCount,
      badCount: progress.badCount + badRows.length,
    };
    options.onEvent({ kind: 'progress', progress, badRows, share: batch.share });
    if (stopsHere) throw new BadRowError(firstBadRow);
    batch = await reader.next();
  }
  return progress;
}

interface SentBatch {
  readonly writtenCount: number;
  readonly badRows: readonly BadRow[];
}

/** Sends a batch, and resends the rest of it as long as the server rejects some of its rows. */
async function sendBatch(
  reader: ImportReader,
  target: ImportTarget,
  batch: EncodedImportBatch,
  progress: BatchProgress,
  options: RunOptions,
): Promise<SentBatch> {
  let rest = batch;
  let writtenCount = 0;
  const badRows = [...batch.badRows];
  for (let attempt = 0; rest.rowCount > 0; attempt++) {
    const idempotencyKey = `${options.key}-${progress.batch}-${attempt}`;
    const refusal = await sendWhenAvailable(target, rest.bytes, idempotencyKey, options);
    if (refusal === undefined) return { writtenCount: writtenCount + rest.rowCount, badRows };
    const rejected = rejectedRowsOf(refusal);
    if (rejected.length === 0) throw refusal;
    const durable = refusal.committedCount ?? 0;
    writtenCount += durable;
    rest = await reader.rest(durable, rejected);
    // The progress stays before the batch, which is resent when the import continues.
    if (!options.skipsBadRows) throw new BadRowError(rest.badRows[0]!);
    badRows.push(...rest.badRows);
  }
  return { writtenCount, badRows };
}

/** Returns the server's refusal, if any. Waits for a server that is unavailable or busy. */
async function sendWhenAvailable(
  target: ImportTarget,
  bytes: Uint8Array,
  idempotencyKey: string,
  { onEvent }: RunOptions,
): Promise<SagittaClientError | undefined> {
  for (let waitMs = WAIT_MS_MIN; ; waitMs = Math.min(WAIT_MS_MAX, 2 * waitMs)) {
    try {
      await target.write(bytes, { idempotencyKey });
      return undefined;
    } catch (error) {
      if (!(error instanceof SagittaClientError)) throw error;
      if (!isWorthWaiting(error)) return error;
      onEvent({ kind: 'waiting', error });
      await target.wait(error.retryAfterMs ?? waitMs);
    }
  }
}

function isWorthWaiting({ code, status }: SagittaClientError): boolean {
  return (
    code === 'network_error' ||
    code === 'timeout' ||
    code === 'idempotency_in_flight' ||
    status === 429 ||
    status === 502 ||
    status === 503 ||
    status === 504
  );
}

/** The rows that an error is about, by their index in the sent batch. */
function rejectedRowsOf({ items }: SagittaClientError): readonly RejectedRow[] {
  const rejected = new Map<number, string>();
  for (const { pointer, detail } of items) {
    const [, index, field] = /^\/rows\/(\d+)(?:\/(.*))?$/.exec(pointer) ?? [];
    if (index === undefined || rejected.has(Number(index))) continue;
    // The server adds the position in the stream, which means nothing to the user.
    const problem = detail.replace(/ \(row \d+ of record batch \d+\)$/, '');
    rejected.set(Number(index), field === undefined ? problem : `${field}: ${problem}`);
  }
  return [...rejected].map(([index, problem]) => ({ index, problem }));
}
