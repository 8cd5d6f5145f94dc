// Sends the batches of a file one after the other, the next one being read meanwhile. Waits while the
// server is away, and sends what was not acknowledged again under the same idempotency key.

import { SagittaClientError } from '@sagitta/client';
import type { BadRow } from '../../../../../src/readers/reader-options.js';
import type { RejectedRow } from './import-batches.js';
import type { EncodedBatch, ImportReader } from './import-reader.js';

/** How far an import is; where it goes on after a cut. */
export interface BatchProgress {
  /** Rows of the file that are done, from its beginning: written or skipped. */
  readonly endRow: number;
  /** Batches that are done: the number of the next one. */
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
  /** The server cannot be reached or is busy: the batch is sent again. */
  | { readonly kind: 'waiting'; readonly error: SagittaClientError };

export interface ImportTarget {
  /** Writes the bytes of an Arrow stream. Throws SagittaClientError. */
  write(bytes: Uint8Array, options: { readonly idempotencyKey: string }): Promise<unknown>;
  /** Resolves after the time, or rejects when the import is cancelled. */
  wait(ms: number): Promise<void>;
}

export interface RunOptions {
  readonly progress: BatchProgress;
  /** Identifies the file, its plan and this import: what all its keys begin with. */
  readonly key: string;
  readonly skipsBadRows: boolean;
  readonly onEvent: (event: ImportEvent) => void;
}

/** A row was not accepted, and the import is to stop at such rows. */
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
 * Resolves when every row is written or skipped. Throws BadRowError, ReadError when the file cannot be
 * read on, and SagittaClientError for refusals that waiting does not change.
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
    // A row at which the import stops is not done: the batch ends before it.
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

/** Sends a batch, and what is left of it as often as the server rejects some of its rows. */
async function sendBatch(
  reader: ImportReader,
  target: ImportTarget,
  batch: EncodedBatch,
  progress: BatchProgress,
  options: RunOptions,
): Promise<SentBatch> {
  let rest = batch;
  let writtenCount = 0;
  const badRows = [...batch.badRows];
  for (let attempt = 0; rest.rowCount > 0; attempt++) {
    const idempotencyKey = `${options.key}-${progress.batch}-${attempt}`;
    const refusal = await sendPatiently(target, rest.bytes, idempotencyKey, options);
    if (refusal === undefined) return { writtenCount: writtenCount + rest.rowCount, badRows };
    const rejected = rejectedRowsOf(refusal);
    if (rejected.length === 0) throw refusal;
    const durable = refusal.committedCount ?? 0;
    writtenCount += durable;
    rest = await reader.again(durable, rejected);
    // The progress stays before the batch: it is sent again when the import goes on.
    if (!options.skipsBadRows) throw new BadRowError(rest.badRows[0]!);
    badRows.push(...rest.badRows);
  }
  return { writtenCount, badRows };
}

/** Returns the refusal, if any; waits for a server that is away or busy. */
async function sendPatiently(
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

/** The rows that an error is about, by their index in what was sent. */
function rejectedRowsOf({ items }: SagittaClientError): readonly RejectedRow[] {
  const rejected = new Map<number, string>();
  for (const { pointer, detail } of items) {
    const [, index, field] = /^\/rows\/(\d+)(?:\/(.*))?$/.exec(pointer) ?? [];
    if (index === undefined || rejected.has(Number(index))) continue;
    // The server adds the place in the stream, which the person has never seen.
    const problem = detail.replace(/ \(row \d+ of record batch \d+\)$/, '');
    rejected.set(Number(index), field === undefined ? problem : `${field}: ${problem}`);
  }
  return [...rejected].map(([index, problem]) => ({ index, problem }));
}
