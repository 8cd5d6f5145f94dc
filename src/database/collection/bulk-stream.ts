// A stream of rows that become segment files on the node that receives them. While the file of one segment is committed
// by the owner of the log, the rows of the next one are collected and encoded, so nodes that receive different streams
// share the work of a load. The rows of a file are one write; a prefix of the stream is durable at any time.

import { rowField, SagittaError, validationError } from '../../common/errors.js';
import type { RowEncoder, VectorBatch } from '../../common/types.js';
import { compactSegmentsTask } from '../../segment/compaction.js';
import { IdIndex } from '../../segment/id-index.js';
import { Segment } from '../../segment/segment.js';
import type { StreamProgress, WriteResult } from '../api/database-api.js';
import type { Collection } from './collection.js';
import { type FileToAdd, shapeOf } from './file-write.js';
import type { CollectionServices } from './maintenance.js';
import type { RowStream } from './write-stream.js';
import { checkTypes, recordOf } from './writes.js';

export interface BulkStreamOptions extends Pick<CollectionServices, 'pool' | 'limits'> {
  readonly collection: Collection;
  readonly encoder: RowEncoder | null;
  /**
   * Lets the owner of the log commit a file. Rejects with `outcome_unknown` if the rows may have been added, and with
   * other errors if they were not.
   */
  readonly commit: (file: FileToAdd) => Promise<WriteResult>;
}

const NOTHING: StreamProgress = {
  batchCount: 0,
  rowCount: 0,
  insertedCount: 0,
  updatedCount: 0,
  sequence: undefined,
};

/** The rows of the next file. */
interface Growing {
  readonly segment: Segment;
  /** The expiry of each row; null if none states one. */
  expiresAtMs: number[] | null;
}

export class BulkStream implements RowStream {
  readonly resumed = NOTHING;
  readonly #options: BulkStreamOptions;
  readonly #shape: string;
  #progress = NOTHING;
  #growing: Growing | null = null;
  /** The last batch that is being added; each waits for the one before. */
  #adding: Promise<void> = Promise.resolve();
  /** The last file that is being committed; each waits for the one before. */
  #committing: Promise<void> = Promise.resolve();
  /** The first error, of a batch or of a file. */
  #failure: { readonly error: unknown } | undefined;
  #commitFailed = false;
  #committingBytes = 0;

  constructor(options: BulkStreamOptions) {
    this.#options = options;
    this.#shape = shapeOf(options.collection.definition);
  }

  /** The rows that are durable. */
  get progress(): StreamProgress {
    return this.#progress;
  }

  /** Bytes of rows that were copied and are not durable. */
  get heldBytes(): number {
    return (this.#growing?.segment.dataBytes ?? 0) + this.#committingBytes;
  }

  /** Resolves when the rows are copied. A failure of an earlier file rejects this batch, or the end of the stream. */
  write(batch: VectorBatch): Promise<void> {
    const adding = this.#adding.then(async () => {
      this.#throwFailure();
      await this.#add(batch);
    });
    this.#adding = adding.catch((error: unknown) => {
      this.#failure ??= { error };
    });
    return adding;
  }

  async flush(): Promise<void> {
    await this.#adding;
    // A batch with an invalid row has not been added, but those before it have.
    await this.#finish();
    await this.#committing;
  }

  async end<Reply extends object>(
    encode: (progress: StreamProgress) => Reply,
  ): Promise<{ reply: Reply; isReplay: boolean }> {
    await this.flush();
    this.#throwFailure();
    return { reply: encode(this.#progress), isReplay: false };
  }

  close(): void {}

  async #add(rows: VectorBatch): Promise<void> {
    const { collection, pool } = this.#options;
    refuseSequences(rows);
    checkTypes(collection, rows);
    const { batch } = recordOf(collection, rows, 0);
    for (let next = 0; next < batch.count; ) {
      this.#growing ??= { segment: this.#createSegment(), expiresAtMs: null };
      const { segment } = this.#growing;
      const count = Math.min(batch.count - next, segment.fits(batch, next));
      if (count > 0) {
        await segment.stage([{ batch, from: next, count }], pool);
        addExpiries(this.#growing, batch, { from: next, count });
        segment.append(batch, next, count, 0);
        next += count;
      }
      if (count === 0 || segment.isFull) await this.#finish();
    }
  }

  #createSegment(): Segment {
    const { collection, limits, encoder } = this.#options;
    return Segment.createActive({
      ...this.#identity(),
      rowsMax: limits.segmentRowsMax,
      vectorBytesMax: limits.segmentValueBytesMax,
      columnsMax: limits.metadataColumnsMax,
      encoder,
      others: () => collection.rows.segments,
    });
  }

  /** The number of a segment that is never among those of the collection. */
  #identity() {
    const { rows } = this.#options.collection;
    const number = rows.takeSegmentNumber();
    return { key: rows.segmentKey(number), number };
  }

  /** Begins to commit the rows of the next file, once those of the one before are durable. */
  async #finish(): Promise<void> {
    const growing = this.#growing;
    this.#growing = null;
    if (growing === null) return;
    growing.segment.seal();
    await this.#committing;
    // Rows after those of a file that was not committed must not be durable.
    if (this.#commitFailed) return;
    this.#committingBytes = growing.segment.dataBytes;
    this.#committing = this.#commit(growing)
      .catch((error: unknown) => {
        this.#commitFailed = true;
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#committingBytes = 0;
      });
  }

  async #commit({ segment, expiresAtMs }: Growing): Promise<void> {
    const { collection, encoder, commit } = this.#options;
    const distinct = await this.#distinctRows(segment);
    const sealed = distinct?.segment ?? segment;
    if (encoder !== null) await sealed.makeHeads(encoder, collection.rows.segments);
    const { addedFiles } = collection;
    const file = await addedFiles.share(sealed);
    const expiries = expiresAtMs && movedBy(distinct?.mapping ?? null, expiresAtMs);
    let added: WriteResult;
    try {
      added = await commit({ file, shape: this.#shape, expiresAtMs: expiries });
    } catch (error) {
      const isUnknown = error instanceof SagittaError && error.code === 'outcome_unknown';
      if (!isUnknown) {
        await addedFiles.discard(file, { sequence: null, isOwn: true }).catch(() => {});
      }
      throw error;
    }
    const { batchCount, rowCount, insertedCount, updatedCount } = this.#progress;
    const repeatedCount = segment.rowCount - sealed.rowCount;
    this.#progress = {
      batchCount: batchCount + 1,
      rowCount: rowCount + segment.rowCount,
      insertedCount: insertedCount + added.insertedCount,
      updatedCount: updatedCount + added.updatedCount + repeatedCount,
      sequence: added.sequence,
    };
  }

  /** The segment without rows that later ones with the same id replace; null if there are none. */
  async #distinctRows(
    segment: Segment,
  ): Promise<{ readonly segment: Segment; readonly mapping: Int32Array } | null> {
    const { pool, limits, encoder } = this.#options;
    const lastRows = new IdIndex();
    for (let row = 0; row < segment.rowCount; row++) {
      const id = segment.idBytes(row);
      const hash = lastRows.hashOf(id);
      const slot = lastRows.find(hash, (_, other) => segment.idEquals(other, id));
      if (slot < 0) {
        lastRows.insert(hash, 0, row);
      } else {
        segment.markDeleted(lastRows.rowAt(slot), 0);
        lastRows.moveTo(slot, 0, row);
      }
    }
    if (lastRows.count === segment.rowCount) return null;
    const { data, mappings } = await pool.run(compactSegmentsTask, {
      ...this.#identity(),
      inputs: [segment.toData()],
      horizonSequence: 0,
      rowsMax: limits.segmentRowsMax,
      columnsMax: limits.metadataColumnsMax,
    });
    const distinct = Segment.fromData(data!);
    await distinct.encode(encoder);
    return { segment: distinct, mapping: mappings[0]! };
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

function addExpiries(
  growing: Growing,
  { expiresAtMs }: VectorBatch,
  { from, count }: { readonly from: number; readonly count: number },
): void {
  if (expiresAtMs === undefined && growing.expiresAtMs === null) return;
  growing.expiresAtMs ??= new Array<number>(growing.segment.rowCount).fill(Number.NaN);
  for (let row = from; row < from + count; row++) {
    growing.expiresAtMs.push(expiresAtMs?.[row] ?? Number.NaN);
  }
}

/** The expiries of the rows that remain: `mapping[row]` is the new number of a row, or -1. */
function movedBy(mapping: Int32Array | null, expiresAtMs: readonly number[]): Float64Array {
  const moved = expiresAtMs.filter((_, row) => mapping === null || mapping[row]! >= 0);
  return Float64Array.from(moved);
}

/** Throws `invalid_request` for the first row that expects a sequence: its file is added much later. */
function refuseSequences({ ifSequences, count }: VectorBatch): void {
  if (ifSequences === undefined) return;
  for (let row = 0; row < count; row++) {
    if (Number.isNaN(ifSequences[row]!)) continue;
    const detail = 'A bulk stream cannot depend on sequences. Send the rows without "bulk".';
    throw validationError([
      { location: rowField(row, 'if_sequence'), code: 'invalid_request', detail },
    ]);
  }
}
