// Sends batches to the service as Arrow streams of some megabytes: while one is on its way, the next
// is read. Each is acknowledged before the next is sent, so that it is always known which rows are
// durable, and kept until then, so that it can be sent again to a service that was gone.

import { SagittaClientError } from '../client/client.js';
import { CliError } from './failure.js';
import type { ImportPosition } from './import-state.js';
import type { RowBatch } from './readers/row-batch.js';
import { END_OF_STREAM, encodeRows, encodeRowsSchema } from './upload-body.js';

/** What an import needs of a collection. */
export interface StreamTarget {
  writeStream(
    body: () => Iterable<Uint8Array>,
    options: { format: 'arrow'; signal?: AbortSignal },
  ): Promise<{ inserted_count: number; updated_count: number; sequence?: number | null }>;
}

export interface UploadOptions {
  /** The id of a row, given what the file says and its number in the whole import. */
  readonly idOf: (found: string | undefined, row: number) => string;
  readonly start: ImportPosition;
  readonly signal?: AbortSignal;
  readonly onCommit: (result: UploadResult) => Promise<void>;
}

export interface UploadResult {
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** Of the values, ids and metadata, as they were sent. */
  readonly byteCount: number;
  /** Of the last write; undefined when there was none. */
  readonly sequence: number | undefined;
  readonly position: ImportPosition;
}

/** Some tenths of a second of writing: what an interruption can cost. */
const PART_BYTES = 24_000_000;
/** A slow source is written as it comes. */
const PART_AGE_MS_MAX = 2_000;

interface Part {
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
  readonly #options: UploadOptions;
  #part: Part = emptyPart();
  #sending: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #result: UploadResult;
  /** Rows that were added, of the whole import. */
  #rowsAdded: number;

  constructor(target: StreamTarget, options: UploadOptions) {
    this.#target = target;
    this.#options = options;
    this.#rowsAdded = options.start.total;
    this.#result = {
      rowCount: 0,
      insertedCount: 0,
      updatedCount: 0,
      byteCount: 0,
      sequence: undefined,
      position: options.start,
    };
  }

  /** What is durable so far, also after a failure. */
  get result(): UploadResult {
    return this.#result;
  }

  /** `firstRow` counts in the file. Throws what the service said of this or an earlier batch. */
  async add(batch: RowBatch, file: number, firstRow: number): Promise<void> {
    const { idOf } = this.#options;
    const ids = Array.from({ length: batch.rowCount }, (_, row) =>
      idOf(batch.ids?.[row], this.#rowsAdded + row),
    );
    this.#rowsAdded += batch.rowCount;
    const part = this.#part;
    for (const chunk of encodeRows(batch, ids)) {
      part.chunks.push(chunk);
      part.byteCount += chunk.byteLength;
    }
    part.batches.push({ batch, file, firstRow });
    part.rowCount += batch.rowCount;
    const age = performance.now() - part.startedAt;
    if (part.byteCount >= PART_BYTES || age >= PART_AGE_MS_MAX) await this.#dispatch();
  }

  /** Sends what is left and waits for it. */
  async finish(): Promise<UploadResult> {
    await this.#dispatch();
    await this.settle();
    this.#throwFailure();
    return this.#result;
  }

  /** Waits for what is under way, leaves the rest; throws nothing. */
  async settle(): Promise<void> {
    await this.#sending;
  }

  async #dispatch(): Promise<void> {
    await this.settle();
    this.#throwFailure();
    const part = this.#part;
    if (part.rowCount === 0) return;
    this.#part = emptyPart();
    this.#sending = this.#send(part);
  }

  async #send(part: Part): Promise<void> {
    const { dimension } = part.batches[0]!.batch;
    const { signal } = this.#options;
    const body = [encodeRowsSchema(dimension), ...part.chunks, END_OF_STREAM];
    try {
      const reply = await this.#target.writeStream(() => body, {
        format: 'arrow',
        ...(signal !== undefined && { signal }),
      });
      await this.#commit(part, part.rowCount, {
        inserted: reply.inserted_count,
        updated: reply.updated_count,
        sequence: reply.sequence ?? undefined,
      });
    } catch (error) {
      this.#failure ??= { error: atPlace(error, part) };
      if (error instanceof SagittaClientError && (error.committedCount ?? 0) > 0) {
        const counts = { inserted: 0, updated: 0, sequence: error.sequence };
        await this.#commit(part, error.committedCount!, counts);
      }
    }
  }

  async #commit(
    part: Part,
    rowCount: number,
    counts: { inserted: number; updated: number; sequence: number | undefined },
  ): Promise<void> {
    const before = this.#result;
    const { file, row } = positionIn(part, rowCount);
    this.#result = {
      rowCount: before.rowCount + rowCount,
      insertedCount: before.insertedCount + counts.inserted,
      updatedCount: before.updatedCount + counts.updated,
      byteCount: before.byteCount + part.byteCount * (rowCount / part.rowCount),
      sequence: counts.sequence ?? before.sequence,
      position: { file, row, total: before.position.total + rowCount },
    };
    await this.#options.onCommit(this.#result);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

function emptyPart(): Part {
  return { chunks: [], batches: [], startedAt: performance.now(), byteCount: 0, rowCount: 0 };
}

/** Behind the first `rowCount` rows of the part. */
function positionIn({ batches }: Part, rowCount: number): { file: number; row: number } {
  let left = rowCount;
  for (const { batch, file, firstRow } of batches) {
    if (left <= batch.rowCount) return { file, row: firstRow + left };
    left -= batch.rowCount;
  }
  throw new RangeError(`${left} rows more than were sent`);
}

/** The service points at `/rows/17/values`; the user knows the line of the file. */
function atPlace(error: unknown, part: Part): unknown {
  if (!(error instanceof SagittaClientError)) return error;
  for (const item of error.items) {
    const found = /^\/rows\/(\d+)(?:\/(\w+))?/.exec(item.pointer);
    if (found === null) continue;
    let row = Number(found[1]);
    for (const { batch } of part.batches) {
      if (row < batch.rowCount) {
        const member = found[2] === undefined ? '' : `${found[2]}: `;
        // The service's place is one of the stream, which the user has not seen.
        const detail = item.detail.replace(/ \(row \d+ of record batch \d+\)$/, '');
        return new CliError(`${batch.place(row)}: ${member}${detail}`, { cause: error });
      }
      row -= batch.rowCount;
    }
  }
  return error;
}
