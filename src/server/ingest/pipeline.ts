// Takes the units of a stream from its body to the disk: while one is on its way there, the next are
// parsed and read. Bounded: the body is read no further than some units ahead. What fails is thrown
// when everything before it is durable and nothing behind it will be.

import { SagittaError, shiftRows } from '../../common/errors.js';
import type { OnCommitted } from '../../database/api.js';
import type { WriteStream } from '../../database/collection/write-stream.js';
import { bytesOf, type ParsedUnit, type Piece, piecesOf, type StreamUnit } from './unit.js';

export interface PipelineOptions {
  readonly stream: WriteStream;
  /** Units that may be parsed at once. */
  readonly threadCount: number;
  /** Waits until so many rows may be written, or throws why they may not. */
  readonly admit: (rowCount: number) => Promise<void>;
  /** Told how many bytes the units under way take. Throws when there is no room for them. */
  readonly onHeld: (byteCount: number) => void;
  readonly onCommitted: OnCommitted;
  /** Told when more of the stream is durable. */
  readonly onDurable: () => void;
}

/**
 * Of units that are read and not durable, beside the one that is being read: with a faster client more
 * would only wait. Ten thousand vectors of 768 dimensions are 31 MB: one is parsed, one is written.
 */
const BYTES_UNDER_WAY_MAX = 48_000_000;
/** Writes that wait for their commit. Small ones may be more, and share it. */
const WRITES_WAITING_MAX = 2;
const SMALL_WRITES_WAITING_MAX = 32;
const SMALL_WRITES_BYTES_MAX = 1_000_000;

interface UnderWay {
  readonly unit: StreamUnit;
  readonly parsing: Promise<ParsedUnit>;
  byteCount: number;
}

/** Resolves when all units are durable. */
export async function writeUnits(
  units: AsyncIterable<StreamUnit>,
  options: PipelineOptions,
): Promise<void> {
  await new Pipeline(units[Symbol.asyncIterator](), options).run();
}

class Pipeline {
  readonly #units: AsyncIterator<StreamUnit>;
  readonly #options: PipelineOptions;
  /** Read, and not yet handed to the database. */
  readonly #queue: UnderWay[] = [];
  #bytesAhead = 0;
  /** Handed over, and not yet durable. */
  #writeCount = 0;
  #writeBytes = 0;
  #isRead = false;
  #isStopped = false;
  /** Of reading: it counts when everything that was read before is durable. */
  #readError: { readonly error: unknown } | undefined;
  /** Of the first write that failed. */
  #writeError: { readonly error: unknown } | undefined;
  #waiters: (() => void)[] = [];

  constructor(units: AsyncIterator<StreamUnit>, options: PipelineOptions) {
    this.#units = units;
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
    // What came first in the stream is what failed.
    failed = this.#writeError ?? failed ?? this.#readError;
    if (failed !== undefined) throw failed.error;
  }

  async #read(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const next = await this.#units.next();
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
    return this.#queue.length <= threadCount && byteCount < BYTES_UNDER_WAY_MAX;
  }

  #begin(unit: StreamUnit): void {
    const { byteCount } = unit;
    this.#bytesAhead += byteCount;
    this.#hold();
    const parsing = unit.parse();
    // Whoever waits for it sees it; nobody waits after a failure before it.
    parsing.catch(() => {});
    this.#queue.push({ unit, parsing, byteCount });
    this.#notify();
  }

  async #write(): Promise<void> {
    for (;;) {
      while (this.#queue.length === 0 && !this.#isRead && this.#writeError === undefined) {
        await this.#change();
      }
      const first = this.#queue[0];
      if (first === undefined || this.#writeError !== undefined) return;
      const parsed = await first.parsing;
      await this.#options.admit(first.unit.rowCount);
      const pieces = piecesOf(parsed);
      const unitBytes = bytesOf(parsed.batch);
      let unsettledCount = pieces.length;
      const onSettled = () => {
        if (--unsettledCount === 0) first.unit.release?.();
      };
      for (const piece of pieces) {
        while (!this.#mayWrite() && this.#writeError === undefined) await this.#change();
        if (this.#writeError !== undefined) return;
        const byteCount = unitBytes / pieces.length;
        this.#handOver(parsed, piece, { unit: first.unit, byteCount, onSettled });
      }
      this.#queue.shift();
      this.#bytesAhead -= first.byteCount;
      this.#hold();
      this.#notify();
    }
  }

  #mayWrite(): boolean {
    if (this.#writeCount < WRITES_WAITING_MAX) return true;
    return this.#writeCount < SMALL_WRITES_WAITING_MAX && this.#writeBytes < SMALL_WRITES_BYTES_MAX;
  }

  #handOver(
    parsed: ParsedUnit,
    piece: Piece,
    handing: { unit: StreamUnit; byteCount: number; onSettled: () => void },
  ): void {
    const { unit, byteCount, onSettled } = handing;
    const { stream, onCommitted, onDurable } = this.#options;
    const { firstRow, batch } = piece;
    const digest =
      parsed.digest === undefined ? undefined : `${parsed.digest}:${firstRow}:${batch.count}`;
    this.#writeCount++;
    this.#writeBytes += byteCount;
    const settle = () => {
      this.#writeCount--;
      this.#writeBytes -= byteCount;
      this.#hold();
      this.#notify();
    };
    stream
      .write(batch, { digest, onCommitted })
      .then(onDurable)
      .then(onSettled)
      .then(settle, (error: unknown) => {
        this.#writeError ??= { error: ofStream(error, unit.firstRow + firstRow, batch.count) };
        settle();
      });
  }

  #hold(): void {
    this.#options.onHeld(this.#bytesAhead + this.#writeBytes);
  }

  #stop(): void {
    this.#isStopped = true;
    this.#notify();
    // Nobody waits for it: it may wait itself, for a client that sends nothing.
    this.#units.return?.()?.then(undefined, () => {});
  }

  /** The next time that anything changes. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  #notify(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }
}

/** A write counts its rows from 0; the reply counts those of the stream. */
function ofStream(error: unknown, firstRow: number, rowCount: number): unknown {
  if (!(error instanceof SagittaError) || error.issues.length === 0) return error;
  const detail = `Rows ${firstRow} to ${firstRow + rowCount - 1}: ${error.message}`;
  return shiftRows(error, firstRow, detail);
}
