// Sends rows in batches, a few at a time. Guarantees the outcome of writing them one after another:
// two rows with one id never share a batch or travel side by side. An error of the server names the
// place that the row came from.

import { SagittaClientError, type Vectors } from '../client/client.js';
import { CliError } from './failure.js';
import type { ImportRow } from './import-row.js';

export interface UploadOptions {
  readonly rowsPerBatch: number;
  readonly batchesInFlightMax: number;
  readonly onCommit: (rowCount: number) => void;
}

export interface UploadResult {
  readonly rowCount: number;
  readonly insertedCount: number;
  readonly updatedCount: number;
  /** Of the last write; undefined when there was none. */
  readonly sequence: number | undefined;
}

/** Far below the service's bound of 64 MB a body, whatever the rows are. */
const BATCH_CHARACTERS_MAX = 8_000_000;

interface Batch {
  readonly rows: ImportRow[];
  readonly ids: Set<string>;
  characters: number;
}

export class Uploader {
  readonly #vectors: Pick<Vectors, 'upsertText'>;
  readonly #options: UploadOptions;
  readonly #inFlight = new Map<Batch, Promise<void>>();
  #batch = emptyBatch();
  #result: UploadResult = { rowCount: 0, insertedCount: 0, updatedCount: 0, sequence: undefined };
  #failure: { readonly error: unknown } | undefined;

  constructor(vectors: Pick<Vectors, 'upsertText'>, options: UploadOptions) {
    this.#vectors = vectors;
    this.#options = options;
  }

  /** What is committed so far, also after a failure. */
  get result(): UploadResult {
    return this.#result;
  }

  /** Throws what the server said of this or an earlier batch. */
  async add(row: ImportRow): Promise<void> {
    const batch = this.#batch;
    const isFull =
      batch.rows.length >= this.#options.rowsPerBatch ||
      batch.characters + row.text.length > BATCH_CHARACTERS_MAX;
    const isRepeated = row.id !== undefined && batch.ids.has(row.id);
    if ((isFull && batch.rows.length > 0) || isRepeated) await this.#send();
    this.#batch.rows.push(row);
    this.#batch.characters += row.text.length;
    if (row.id !== undefined) this.#batch.ids.add(row.id);
  }

  /** Sends what is left and waits for all. */
  async finish(): Promise<UploadResult> {
    await this.#send();
    await this.settle();
    this.#throwFailure();
    return this.#result;
  }

  /** Waits for what is under way; throws nothing. */
  async settle(): Promise<void> {
    await Promise.all(this.#inFlight.values());
  }

  async #send(): Promise<void> {
    const batch = this.#batch;
    this.#batch = emptyBatch();
    while (this.#inFlight.size > 0 && this.#mustWait(batch)) {
      await Promise.race(this.#inFlight.values());
    }
    this.#throwFailure();
    if (batch.rows.length === 0) return;
    const sending = this.#write(batch).finally(() => this.#inFlight.delete(batch));
    this.#inFlight.set(batch, sending);
  }

  #mustWait(batch: Batch): boolean {
    if (this.#inFlight.size >= this.#options.batchesInFlightMax) return true;
    for (const other of this.#inFlight.keys()) {
      for (const id of batch.ids) if (other.ids.has(id)) return true;
    }
    return false;
  }

  async #write(batch: Batch): Promise<void> {
    try {
      const reply = await this.#vectors.upsertText(batch.rows.map((row) => row.text));
      this.#result = {
        rowCount: this.#result.rowCount + batch.rows.length,
        insertedCount: this.#result.insertedCount + reply.inserted_count,
        updatedCount: this.#result.updatedCount + reply.updated_count,
        sequence: Math.max(this.#result.sequence ?? 0, reply.sequence),
      };
      this.#options.onCommit(this.#result.rowCount);
    } catch (error) {
      this.#failure ??= { error: atPlace(error, batch.rows) };
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

function emptyBatch(): Batch {
  return { rows: [], ids: new Set(), characters: 0 };
}

/** The server points at `/vectors/17/values`; the user knows the line of the file. */
function atPlace(error: unknown, rows: readonly ImportRow[]): unknown {
  if (!(error instanceof SagittaClientError)) return error;
  for (const item of error.items) {
    const found = /^\/vectors\/(\d+)(?:\/(\w+))?/.exec(item.pointer);
    const row = found === null ? undefined : rows[Number(found[1])];
    if (row === undefined) continue;
    const member = found![2] === undefined ? '' : `${found![2]}: `;
    return new CliError(`${row.place}: ${member}${item.detail}`, { cause: error });
  }
  return error;
}
