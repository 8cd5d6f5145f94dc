// Sends row batches to the server as Arrow streams of a few megabytes each, and fills the next upload while one is in
// flight. Each upload is acknowledged before the next one is sent, so the number of durable rows is always known. Until
// then it stays in memory, so that it can be retried.

import { SagittaClientError } from '@sagitta/client';
import { encodeEnd } from '../../formats/arrow/ipc-writer.js';
import { encodeRows, encodeRowsSchema } from '../../readers/encode-rows.js';
import type { RowBatch } from '../../readers/row-batch.js';
import { CliError } from '../terminal/failure.js';
import type { ImportProgress } from './journal.js';

/** The part of the client's collection methods that an import needs. */
export interface StreamTarget {
  writeStream(
    body: () => Iterable<Uint8Array>,
    options: { format: 'arrow'; mode?: ImportMode; signal?: AbortSignal },
  ): Promise<{ inserted_count: number; updated_count: number; sequence?: number | null }>;
}

/** The write modes that are safe to repeat after an interruption. */
export type ImportMode = 'upsert' | 'update' | 'patch';

export interface UploaderOptions {
  /** The id of a row, from the id found in the file and the row's number in the whole import. */
  readonly idOf: (found: string | undefined, row: number) => string;
  readonly start: ImportProgress;
  /** Absent: `upsert`. */
  readonly mode?: ImportMode;
  /** The number of rows from which an upload is sent; absent for no limit. */
  readonly uploadRowsMax?: number | undefined;
  readonly signal?: AbortSignal;
  /** A monotonic clock in milliseconds, for the age of an upload. */
  readonly now?: () => number;
  readonly onCommit: (result: UploadResult) => Promise<void>;
}

export interface UploadResult {
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** Bytes of values, ids and metadata that were sent. */
  readonly byteCount: number;
  /** Sequence of the last write; undefined when there was none. */
  readonly sequence: number | undefined;
  readonly progress: ImportProgress;
}

/** Size of an upload. Writing it takes some tenths of a second, which is the work that an interruption can cost. */
const UPLOAD_BYTES = 24_000_000;
/** Rows of a slow source are sent at least this often. */
const UPLOAD_AGE_MS_MAX = 2_000;

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
}

export class Uploader {
  readonly #target: StreamTarget;
  readonly #options: UploaderOptions;
  readonly #now: () => number;
  #pending: Upload;
  #sending: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #result: UploadResult;
  /** Rows added so far in the whole import, earlier runs included. */
  #rowsAdded: number;

  constructor(target: StreamTarget, options: UploaderOptions) {
    this.#target = target;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
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
    const { idOf } = this.#options;
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
    const ageMs = this.#now() - pending.startedAt;
    const isFull =
      pending.byteCount >= UPLOAD_BYTES ||
      pending.rowCount >= (this.#options.uploadRowsMax ?? Number.POSITIVE_INFINITY);
    if (isFull || ageMs >= UPLOAD_AGE_MS_MAX) await this.#dispatch();
  }

  /** Sends the remaining rows and waits until they are durable. */
  async finish(): Promise<UploadResult> {
    await this.#dispatch();
    await this.settle();
    this.#throwFailure();
    return this.#result;
  }

  /** Waits for the upload in flight without sending more rows. Never throws. */
  async settle(): Promise<void> {
    await this.#sending;
  }

  async #dispatch(): Promise<void> {
    await this.settle();
    this.#throwFailure();
    const upload = this.#pending;
    if (upload.rowCount === 0) return;
    this.#pending = emptyUpload(this.#now());
    this.#sending = this.#send(upload);
  }

  async #send(upload: Upload): Promise<void> {
    const { signal, mode } = this.#options;
    const body = [
      encodeRowsSchema(upload.batches[0]!.batch, true),
      ...upload.chunks,
      END_OF_STREAM,
    ];
    try {
      const reply = await this.#target.writeStream(() => body, {
        format: 'arrow',
        ...(mode !== undefined && { mode }),
        ...(signal !== undefined && { signal }),
      });
      await this.#commit(upload, upload.rowCount, {
        inserted: reply.inserted_count,
        updated: reply.updated_count,
        sequence: reply.sequence ?? undefined,
      });
    } catch (error) {
      this.#failure ??= { error: withLocation(error, upload) };
      if (error instanceof SagittaClientError && (error.committedCount ?? 0) > 0) {
        const counts = { inserted: 0, updated: 0, sequence: error.sequence };
        await this.#commit(upload, error.committedCount!, counts);
      }
    }
  }

  async #commit(
    upload: Upload,
    rowCount: number,
    counts: { inserted: number; updated: number; sequence: number | undefined },
  ): Promise<void> {
    const before = this.#result;
    const { file, row } = progressIn(upload, rowCount);
    this.#result = {
      rowCount: before.rowCount + rowCount,
      insertedCount: before.insertedCount + counts.inserted,
      updatedCount: before.updatedCount + counts.updated,
      byteCount: before.byteCount + upload.byteCount * (rowCount / upload.rowCount),
      sequence: counts.sequence ?? before.sequence,
      progress: { file, row, total: before.progress.total + rowCount },
    };
    await this.#options.onCommit(this.#result);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

function emptyUpload(startedAt: number): Upload {
  return { chunks: [], batches: [], startedAt, byteCount: 0, rowCount: 0 };
}

/** Where the import is after the first `rowCount` rows of an upload. */
function progressIn({ batches }: Upload, rowCount: number): { file: number; row: number } {
  let left = rowCount;
  for (const { batch, file, firstRow } of batches) {
    if (left <= batch.rowCount) return { file, row: firstRow + left };
    left -= batch.rowCount;
  }
  throw new RangeError(`the server reports ${left} rows more than were sent`);
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
