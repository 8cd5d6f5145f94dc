// Moves the batches of a stream from its body to the disk: while one is written, the next ones are read and parsed,
// at most a few batches ahead. An error is thrown when every batch before the failed one is durable and none after
// it will be.

import { SagittaError, shiftRows } from '../../common/errors.js';
import type { OnCommitted } from '../../database/api/database-api.js';
import type { RowStream } from '../../database/collection/write-stream.js';
import { type AtomicRows, bytesOf, type ParsedRows, toAtomicRows } from '../bodies/parsed-rows.js';
import type { IngestBatch } from './ingest-batch.js';

export interface PipelineOptions {
  readonly stream: RowStream;
  /** The number of batches that may be parsed at once. */
  readonly threadCount: number;
  /** Waits until `rowCount` rows may be written, or rejects. */
  readonly admit: (rowCount: number) => Promise<void>;
  /** Called with the bytes of all batches in progress. Throws if they do not fit into memory. */
  readonly onBytes: (byteCount: number) => void;
  readonly onCommitted: OnCommitted;
  /** Called when more of the stream is durable. */
  readonly onDurable: () => void;
}

/**
 * The bytes of batches that have been read but are not durable; more would only wait. Ten thousand vectors of 768
 * dimensions are 31 MB, so that one batch can be parsed while one is written.
 */
const BYTES_IN_FLIGHT_MAX = 48_000_000;
/** Writes that wait for their commit. Small ones may be more, since they share commits. */
const WRITES_WAITING_MAX = 2;
const SMALL_WRITES_WAITING_MAX = 32;
const SMALL_WRITES_BYTES_MAX = 1_000_000;

interface QueuedBatch {
  readonly batch: IngestBatch;
  readonly parsing: Promise<ParsedRows>;
}

/** Resolves when all batches are durable. */
export async function writeBatches(
  batches: AsyncIterable<IngestBatch>,
  options: PipelineOptions,
): Promise<void> {
  await new Pipeline(batches[Symbol.asyncIterator](), options).run();
}

class Pipeline {
  readonly #batches: AsyncIterator<IngestBatch>;
  readonly #options: PipelineOptions;
  /** Batches that have been read but not submitted to the database. */
  readonly #queue: QueuedBatch[] = [];
  #bytesAhead = 0;
  /** Writes that have been submitted but are not durable. */
  #writeCount = 0;
  #writeBytes = 0;
  #isRead = false;
  #isStopped = false;
  /** The error of reading, thrown when everything that was read before is durable. */
  #readError: { readonly error: unknown } | undefined;
  /** The error of the first failed write. */
  #writeError: { readonly error: unknown } | undefined;
  #waiters: (() => void)[] = [];

  constructor(batches: AsyncIterator<IngestBatch>, options: PipelineOptions) {
    this.#batches = batches;
    this.#options = options;
  }

  async run(): Promise<void> {
    void this.#read();
    let failed: { readonly error: unknown } | undefined;
    try {
      await this.#write();
    } catch (error) {
      failed = { error };
    }
    this.#stop();
    while (this.#writeCount > 0) await this.#change();
    // Reports the error that is first in the stream.
    failed = this.#writeError ?? failed ?? this.#readError;
    if (failed !== undefined) throw failed.error;
  }

  async #read(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const next = await this.#batches.next();
        if (next.done === true) break;
        this.#begin(next.value);
        while (!this.#isStopped && !this.#mayRead()) await this.#change();
      }
    } catch (error) {
      this.#readError = { error };
    }
    this.#isRead = true;
    this.#notify();
  }

  #mayRead(): boolean {
    if (this.#queue.length === 0) return true;
    const { threadCount } = this.#options;
    const byteCount = this.#bytesAhead + this.#writeBytes;
    return this.#queue.length <= threadCount && byteCount < BYTES_IN_FLIGHT_MAX;
  }

  #begin(batch: IngestBatch): void {
    this.#bytesAhead += batch.byteCount;
    this.#reportBytes();
    const parsing = batch.parse();
    // `#write` awaits it, unless an earlier batch fails.
    parsing.catch(() => {});
    this.#queue.push({ batch, parsing });
    this.#notify();
  }

  async #write(): Promise<void> {
    for (;;) {
      while (this.#queue.length === 0 && !this.#isRead && this.#writeError === undefined) {
        await this.#change();
      }
      const first = this.#queue[0];
      if (first === undefined || this.#writeError !== undefined) return;
      const { batch } = first;
      const parsed = await first.parsing;
      await this.#options.admit(batch.rowCount);
      const writes = toAtomicRows(parsed);
      const byteCount = bytesOf(parsed) / writes.length;
      let unsettledCount = writes.length;
      const onSettled = () => {
        if (--unsettledCount === 0) batch.release?.();
      };
      for (const rows of writes) {
        while (!this.#mayWrite() && this.#writeError === undefined) await this.#change();
        if (this.#writeError !== undefined) return;
        const { digest } = parsed;
        const firstRow = batch.firstRow + rows.firstRow;
        this.#submit(rows, { digest, firstRow, byteCount, onSettled });
      }
      this.#queue.shift();
      this.#bytesAhead -= batch.byteCount;
      this.#reportBytes();
      this.#notify();
    }
  }

  #mayWrite(): boolean {
    if (this.#writeCount < WRITES_WAITING_MAX) return true;
    return this.#writeCount < SMALL_WRITES_WAITING_MAX && this.#writeBytes < SMALL_WRITES_BYTES_MAX;
  }

  /** `firstRow` counts rows of the stream; `digest` is that of the whole batch. */
  #submit(
    rows: AtomicRows,
    options: {
      digest: string | undefined;
      firstRow: number;
      byteCount: number;
      onSettled: () => void;
    },
  ): void {
    const { digest, firstRow, byteCount, onSettled } = options;
    const { stream, onCommitted, onDurable } = this.#options;
    const { batch } = rows;
    this.#writeCount++;
    this.#writeBytes += byteCount;
    const settle = () => {
      this.#writeCount--;
      this.#writeBytes -= byteCount;
      this.#reportBytes();
      this.#notify();
    };
    stream
      .write(batch, {
        digest: digest && `${digest}:${rows.firstRow}:${batch.count}`,
        onCommitted,
      })
      .then(onDurable)
      .then(onSettled)
      .then(settle, (error: unknown) => {
        this.#writeError ??= { error: toStreamError(error, firstRow, batch.count) };
        settle();
      });
  }

  #reportBytes(): void {
    this.#options.onBytes(this.#bytesAhead + this.#writeBytes);
  }

  #stop(): void {
    this.#isStopped = true;
    this.#notify();
    // Not awaited: the iterator may be waiting for a client that sends nothing.
    this.#batches.return?.()?.then(undefined, () => {});
  }

  /** Resolves at the next `#notify`. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #notify(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }
}

/** A write counts its rows from 0, and the reply those of the stream. */
function toStreamError(error: unknown, firstRow: number, rowCount: number): unknown {
  if (!(error instanceof SagittaError) || error.issues.length === 0) return error;
  const detail = `Rows ${firstRow} to ${firstRow + rowCount - 1}: ${error.message}`;
  return shiftRows(error, firstRow, detail);
}
