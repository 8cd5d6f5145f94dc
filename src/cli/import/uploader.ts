// Sends row batches to one or several servers as Arrow streams, and fills the next upload while others are in flight, one
// per target. An upload stays in memory until it is acknowledged, so that it can be retried.
//
// The result is that of a sequential import: an upload with an id of another one in flight is sent after it. Uploads may
// finish in any order, so the counts cover all durable rows, but the progress only those before the first row that is
// not durable.

import { SagittaClientError } from '@sagitta/client';
import { encodeEnd } from '../../formats/arrow/ipc-writer.js';
import { encodeRows, encodeRowsSchema } from '../../readers/encode-rows.js';
import type { RowBatch } from '../../readers/row-batch.js';
import { CliError, isUnreachable } from '../terminal/failure.js';
import type { ImportProgress } from './journal.js';

/** A server that uploads are sent to, one at a time: the part of the client's collection methods that an import needs. */
export interface UploadTarget {
  writeStream(
    body: () => Iterable<Uint8Array>,
    options: { format: 'arrow'; mode?: ImportMode; bulk?: true },
  ): Promise<WriteReply>;
  /**
   * Called when it cannot be reached; it is used no more then. Absent for the server that the user named, without which
   * the import fails.
   */
  readonly onLeftOut?: (error: unknown) => void;
}

interface WriteReply {
  readonly inserted_count: number;
  readonly updated_count: number;
  readonly sequence?: number | null;
}

/** The write modes that are safe to repeat after an interruption. */
export type ImportMode = 'upsert' | 'update' | 'patch';

export interface UploaderOptions {
  /** The id of a row, from the id found in the file and the row's number in the whole import. */
  readonly idOf: (found: string | undefined, row: number) => string;
  readonly start: ImportProgress;
  /** Absent: `upsert`, the only mode for several targets. */
  readonly mode?: ImportMode;
  /** The number of rows from which an upload is sent; absent for no limit. */
  readonly uploadRowsMax?: number | undefined;
  /** Once it is aborted, `add` sends nothing more. */
  readonly interruption?: AbortSignal;
  /** A monotonic clock in milliseconds, for the age of an upload. */
  readonly now?: () => number;
  /** Called after each upload with durable rows; calls do not overlap. */
  readonly onCommit: (result: UploadResult) => Promise<void>;
}

export interface UploadResult {
  /** Durable rows of this run, also those behind rows that are not durable. */
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** Bytes of values, ids and metadata that were sent. */
  readonly byteCount: number;
  /** Sequence of the last write; undefined when there was none. */
  readonly sequence: number | undefined;
  /** How far all rows are durable. */
  readonly progress: ImportProgress;
}

interface UploadLimits {
  /** The size from which an upload is sent. */
  readonly bytes: number;
  readonly rows: number;
  /** Rows of a slow source are sent at least this often. */
  readonly ageMsMax: number;
}

/** Writing an upload takes some tenths of a second, which is the work that an interruption can cost. */
const LIMITS_OF_ONE: UploadLimits = {
  bytes: 24_000_000,
  rows: Number.POSITIVE_INFINITY,
  ageMsMax: 2_000,
};

/**
 * With several targets, each upload becomes segment files, which hold 64 MiB of values; the last record batch adds up to
 * 8 MB. Short vectors are limited by rows, since the ids of the uploads in flight and of the next one are in memory, at
 * about 100 bytes each: at most 130 MB for four targets. A source that is too slow to fill an upload in this time is
 * slower than a single node.
 */
const LIMITS_OF_SEVERAL: UploadLimits = { bytes: 59_000_000, rows: 262_144, ageMsMax: 10_000 };

/** Rows that are collected for one stream. */
interface Upload {
  readonly chunks: Uint8Array[];
  readonly batches: {
    readonly batch: RowBatch;
    readonly file: number;
    readonly firstRow: number;
  }[];
  readonly startedAt: number;
  byteCount: number;
  rowCount: number;
  /** Empty with a single target. */
  readonly ids: Set<string>;
  /** Uploads in flight that contain an id of this one. */
  readonly predecessors: Set<Flight>;
}

/** An upload that has been sent. It outlives the rows while rows before it are not durable. */
interface Flight {
  /** Empty as soon as it is over. */
  readonly ids: Set<string>;
  /** Where it is being sent to. */
  target: UploadTarget;
  /** Resolves when it is over. Never rejects. */
  done: Promise<void>;
  /** Its durable rows, all or the first ones, and where they end; undefined while it is in flight. */
  durable: (FilePosition & { readonly rowCount: number; readonly isWhole: boolean }) | undefined;
}

type FilePosition = Pick<ImportProgress, 'file' | 'row'>;

interface Commit {
  readonly rowCount: number;
  readonly inserted: number;
  readonly updated: number;
  readonly sequence: number | undefined;
}

export class Uploader {
  readonly #options: UploaderOptions;
  readonly #now: () => number;
  readonly #limits: UploadLimits;
  readonly #hasSeveral: boolean;
  readonly #idle: IdleTargets;
  #pending: Upload;
  readonly #inFlight = new Set<Flight>();
  /** In the order of their rows, from the first one that is not known to be durable. */
  readonly #unsettled: Flight[] = [];
  #failure: { readonly error: unknown } | undefined;
  #result: UploadResult;
  /** Resolves when all commits so far have been reported. */
  #reported: Promise<void> = Promise.resolve();
  /** Rows added so far in the whole import, earlier runs included. */
  #rowsAdded: number;

  constructor(targets: readonly UploadTarget[], options: UploaderOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#hasSeveral = targets.length > 1;
    this.#limits = this.#hasSeveral ? LIMITS_OF_SEVERAL : LIMITS_OF_ONE;
    this.#idle = new IdleTargets(targets);
    this.#pending = emptyUpload(this.#now());
    this.#rowsAdded = options.start.total;
    this.#result = {
      rowCount: 0,
      insertedCount: 0,
      updatedCount: 0,
      byteCount: 0,
      sequence: undefined,
      progress: options.start,
    };
  }

  /** The rows that are durable so far; also valid after a failure. */
  get result(): UploadResult {
    return this.#result;
  }

  /** `firstRow` is the position of the batch in the file. Throws the server's error for this or an earlier batch. */
  async add(batch: RowBatch, file: number, firstRow: number): Promise<void> {
    const { idOf, uploadRowsMax = Number.POSITIVE_INFINITY, interruption } = this.#options;
    const ids = Array.from({ length: batch.rowCount }, (_, row) =>
      idOf(batch.ids?.[row], this.#rowsAdded + row),
    );
    this.#rowsAdded += batch.rowCount;
    const pending = this.#pending;
    for (const chunk of encodeRows(batch, ids)) {
      pending.chunks.push(chunk);
      pending.byteCount += chunk.byteLength;
    }
    pending.batches.push({ batch, file, firstRow });
    pending.rowCount += batch.rowCount;
    if (this.#hasSeveral) this.#noteIds(pending, ids);
    const isFull =
      pending.byteCount >= this.#limits.bytes ||
      pending.rowCount >= Math.min(this.#limits.rows, uploadRowsMax);
    const ageMs = this.#now() - pending.startedAt;
    if (isFull || ageMs >= this.#limits.ageMsMax) await this.#dispatch({ isFull, interruption });
  }

  /** Sends the remaining rows and waits until all are durable. */
  async finish(): Promise<UploadResult> {
    await this.#dispatch({ isFull: false });
    await this.settle();
    this.#throwFailure();
    return this.#result;
  }

  /** Waits for the uploads in flight without sending more rows. Never throws. */
  async settle(): Promise<void> {
    await Promise.all(Array.from(this.#inFlight, ({ done }) => done));
  }

  #noteIds(upload: Upload, ids: readonly string[]): void {
    for (const id of ids) {
      upload.ids.add(id);
      for (const flight of this.#inFlight) {
        if (flight.ids.has(id)) upload.predecessors.add(flight);
      }
    }
  }

  /** Sends the pending rows as soon as their predecessors are durable and a target is idle. */
  async #dispatch({
    isFull,
    interruption,
  }: {
    readonly isFull: boolean;
    readonly interruption?: AbortSignal | undefined;
  }): Promise<void> {
    const upload = this.#pending;
    if (upload.rowCount === 0) return;
    await Promise.all(Array.from(upload.predecessors, ({ done }) => done));
    const target = await this.#idle.take();
    if (this.#failure !== undefined || interruption?.aborted) {
      this.#idle.release(target);
      this.#throwFailure();
      return;
    }
    this.#pending = emptyUpload(this.#now());
    const { ids } = upload;
    const flight: Flight = { ids, target, done: Promise.resolve(), durable: undefined };
    this.#inFlight.add(flight);
    this.#unsettled.push(flight);
    flight.done = this.#send(upload, flight, isFull && this.#hasSeveral);
  }

  async #send(upload: Upload, flight: Flight, isBulk: boolean): Promise<void> {
    try {
      const reply = await this.#write(upload, flight, isBulk);
      await this.#commit(upload, flight, {
        rowCount: upload.rowCount,
        inserted: reply.inserted_count,
        updated: reply.updated_count,
        sequence: reply.sequence ?? undefined,
      });
    } catch (error) {
      this.#failure ??= { error: withLocation(error, upload) };
      if (error instanceof SagittaClientError && error.committedCountAtLeast > 0) {
        const rowCount = Math.min(error.committedCountAtLeast, upload.rowCount);
        const { sequence } = error;
        // The first failure is the one to report.
        await this.#commit(upload, flight, { rowCount, inserted: 0, updated: 0, sequence }).catch(
          () => {},
        );
      }
    } finally {
      this.#inFlight.delete(flight);
      flight.ids.clear();
      this.#idle.release(flight.target);
    }
  }

  /**
   * Writes to the target of the flight. If that is a node that cannot be reached, it is left out, and the next idle target
   * gets the whole upload: writing rows again changes nothing.
   */
  async #write(upload: Upload, flight: Flight, isBulk: boolean): Promise<WriteReply> {
    const { mode } = this.#options;
    const schema = encodeRowsSchema(upload.batches[0]!.batch, true);
    const body = [schema, ...upload.chunks, END_OF_STREAM];
    for (;;) {
      try {
        return await flight.target.writeStream(() => body, {
          format: 'arrow',
          ...(mode !== undefined && { mode }),
          ...(isBulk && { bulk: true }),
        });
      } catch (error) {
        const { onLeftOut } = flight.target;
        if (onLeftOut === undefined || !isUnreachable(error)) throw error;
        onLeftOut(error);
        flight.target = await this.#idle.take();
        if (this.#failure !== undefined) throw error;
      }
    }
  }

  async #commit(upload: Upload, flight: Flight, commit: Commit): Promise<void> {
    const { rowCount, sequence } = commit;
    const isWhole = rowCount === upload.rowCount;
    flight.durable = { ...positionIn(upload, rowCount), rowCount, isWhole };
    const before = this.#result;
    const sequences = [before.sequence, sequence].filter((each) => each !== undefined);
    const result: UploadResult = {
      rowCount: before.rowCount + rowCount,
      insertedCount: before.insertedCount + commit.inserted,
      updatedCount: before.updatedCount + commit.updated,
      byteCount: before.byteCount + upload.byteCount * (rowCount / upload.rowCount),
      sequence: sequences.length === 0 ? undefined : Math.max(...sequences),
      progress: this.#advance(before.progress),
    };
    this.#result = result;
    this.#reported = this.#reported.then(() => this.#options.onCommit(result));
    await this.#reported;
  }

  /** The progress after the uploads at the beginning of `#unsettled` that are over. */
  #advance(before: ImportProgress): ImportProgress {
    let progress = before;
    for (;;) {
      const durable = this.#unsettled[0]?.durable;
      if (durable === undefined) return progress;
      const { file, row, rowCount, isWhole } = durable;
      progress = { file, row, total: progress.total + rowCount };
      if (isWhole) this.#unsettled.shift();
      // Nothing is contiguous after an upload that has failed.
      else this.#unsettled.length = 0;
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/** The targets without an upload in flight, and the uploads that wait for one, both in the order of their arrival. */
class IdleTargets {
  readonly #idle: UploadTarget[];
  readonly #waiting: ((target: UploadTarget) => void)[] = [];

  constructor(targets: readonly UploadTarget[]) {
    this.#idle = [...targets];
  }

  async take(): Promise<UploadTarget> {
    return this.#idle.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(target: UploadTarget): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(target);
    else next(target);
  }
}

function emptyUpload(startedAt: number): Upload {
  const counts = { byteCount: 0, rowCount: 0 };
  return { chunks: [], batches: [], startedAt, ...counts, ids: new Set(), predecessors: new Set() };
}

/** Where the import is after the first `rowCount` rows of an upload. */
function positionIn({ batches }: Upload, rowCount: number): FilePosition {
  let left = rowCount;
  for (const { batch, file, firstRow } of batches) {
    if (left <= batch.rowCount) return { file, row: firstRow + left };
    left -= batch.rowCount;
  }
  throw new RangeError(`the upload has ${left} rows fewer than ${rowCount}`);
}

/** Replaces the JSON pointer of a server error (`/rows/17/values`) by the row's location in its file. */
function withLocation(error: unknown, upload: Upload): unknown {
  if (!(error instanceof SagittaClientError)) return error;
  for (const item of error.items) {
    const found = /^\/rows\/(\d+)(?:\/(\w+))?/.exec(item.pointer);
    if (found === null) continue;
    let row = Number(found[1]);
    for (const { batch } of upload.batches) {
      if (row < batch.rowCount) {
        const member = found[2] === undefined ? '' : `${found[2]}: `;
        // The server adds the location in the stream, which means nothing to the user.
        const detail = item.detail.replace(/ \(row \d+ of record batch \d+\)$/, '');
        return new CliError(`${batch.location(row)}: ${member}${detail}`, { cause: error });
      }
      row -= batch.rowCount;
    }
  }
  return error;
}

const END_OF_STREAM = encodeEnd();
