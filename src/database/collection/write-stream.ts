// A stream of writes to one collection. Its batches are written in order and atomically, so that a prefix of the
// stream is durable at any time. After a failure nothing more is written. With an idempotency key every batch is
// committed together with the progress of the stream, and a retry skips the batches that are already durable.

import { createHash } from 'node:crypto';
import { assert } from '../../common/errors.js';
import type { VectorBatch } from '../../common/types.js';
import type { StoreOperation } from '../../storage/store.js';
import { type Claim, type IdempotencyKeys, keyReused } from '../admin/idempotency.js';
import type {
  IdempotencyRequest,
  OnCommitted,
  StreamProgress,
  WriteMode,
  WriteResult,
} from '../api/database-api.js';
import type { Collection } from './collection.js';
import { type WriteServices, writeBatch } from './patches.js';
import type { Write } from './writer.js';

export interface WriteStreamOptions {
  readonly mode: WriteMode;
  readonly idempotency?: IdempotencyRequest | undefined;
}

type StreamServices = WriteServices & {
  readonly idempotencyKeys: IdempotencyKeys;
  /** A batch is durable. */
  readonly onWritten: (result: WriteResult) => void;
};

const NO_PROGRESS: StreamProgress = {
  batchCount: 0,
  rowCount: 0,
  insertedCount: 0,
  updatedCount: 0,
  sequence: undefined,
};

/** A stream of rows to a collection, of which a prefix is durable. */
export type RowStream = Pick<
  WriteStream,
  'progress' | 'resumed' | 'heldBytes' | 'write' | 'flush' | 'end' | 'close'
>;

/**
 * Writes batches to a collection in order until one of them fails. Its writes fail once the collection that it was
 * opened for is deleted or replaced.
 */
export class WriteStream {
  readonly #collection: Collection;
  readonly #mode: WriteMode;
  readonly #services: StreamServices;
  /** Null without an idempotency key. */
  readonly #keyed: KeyedStream | null;
  readonly #resumed: StreamProgress;
  /** The progress with all batches that were handed to the store. */
  #prepared: StreamProgress;
  /** The progress with all batches that are on disk. */
  #durable: StreamProgress;
  #failure: { readonly error: unknown } | undefined;

  /** Throws `idempotency_in_flight` and `idempotency_key_reused`. */
  static async open(
    collection: Collection,
    { mode, idempotency }: WriteStreamOptions,
    services: StreamServices,
  ): Promise<WriteStream> {
    if (idempotency === undefined) return new WriteStream(collection, mode, services, null);
    const { incarnation } = collection;
    const claim = await services.idempotencyKeys.claim({ ...idempotency, incarnation });
    const keyed = new KeyedStream(claim, idempotency.key, collection);
    return new WriteStream(collection, mode, services, keyed);
  }

  private constructor(
    collection: Collection,
    mode: WriteMode,
    services: StreamServices,
    keyed: KeyedStream | null,
  ) {
    this.#collection = collection;
    this.#mode = mode;
    this.#services = services;
    this.#keyed = keyed;
    this.#resumed = this.#keyed?.earlier ?? NO_PROGRESS;
    this.#prepared = this.#resumed;
    this.#durable = this.#resumed;
  }

  /** The progress that earlier attempts with the same key made durable. */
  get resumed(): StreamProgress {
    return this.#resumed;
  }

  /** The durable progress, including that of earlier attempts. */
  get progress(): StreamProgress {
    return this.#durable;
  }

  /** Bytes of rows that were copied and are not durable: none, since batches are written from where they are. */
  get heldBytes(): number {
    return 0;
  }

  /**
   * Writes a batch after the previous ones; resolves when it is durable and visible. The caller may write the next
   * batch before that. With a key, `digest` identifies the batch, and a batch that is already durable is skipped.
   * Throws what `CollectionHandle.write` throws, and then the same error for every later batch. Throws
   * `idempotency_key_reused` if this is not the stream that the key was used for.
   */
  async write(
    batch: VectorBatch,
    { digest, onCommitted }: { digest?: string | undefined; onCommitted?: OnCommitted } = {},
  ): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    let chain: string | undefined;
    if (this.#keyed !== null) {
      assert(digest !== undefined, 'a stream with a key has a digest for each batch');
      if (this.#skip(this.#keyed, batch, digest)) return;
      chain = this.#keyed.chain;
    }
    const result = await this.#collection.write(this.#toWrite(batch, chain), onCommitted);
    this.#durable = advanced(this.#durable, batch.count, result);
    this.#services.onWritten(result);
  }

  /** Resolves when everything that was written is durable, or was refused. */
  async flush(): Promise<void> {}

  /**
   * Ends the stream once all batches are durable. With a key it stores the reply, or returns the reply that an earlier
   * attempt stored.
   */
  async end<Reply extends object>(
    encode: (progress: StreamProgress) => Reply,
  ): Promise<{ reply: Reply; isReplay: boolean }> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const kept = this.#keyed?.end();
    if (kept != null) return { reply: kept as Reply, isReplay: true };
    const reply = encode(this.#durable);
    if (this.#keyed !== null) {
      const operations = this.#keyed.storeReply(reply, this.#durable);
      await this.#services.idempotencyKeys.commit(operations, this.#collection.incarnation);
    }
    return { reply, isReplay: false };
  }

  /** Releases the key. No batch may be in progress. */
  close(): void {
    this.#keyed?.release();
  }

  #skip(keyed: KeyedStream, batch: VectorBatch, digest: string): boolean {
    try {
      return keyed.skip(batch.count, digest);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  #toWrite(batch: VectorBatch, chain: string | undefined): Write<WriteResult> {
    const alsoCommit = (result: WriteResult) => {
      this.#prepared = advanced(this.#prepared, batch.count, result);
      return chain === undefined ? [] : this.#keyed!.storeProgress(this.#prepared, chain);
    };
    const options = { mode: this.#mode, alsoCommit };
    const write = writeBatch(this.#collection, batch, options, this.#services);
    return {
      ...write,
      prepare: (sequence, pending) => {
        if (this.#failure !== undefined) throw this.#failure.error;
        return write.prepare(sequence, pending);
      },
      failed: (error) => {
        this.#failure ??= { error };
      },
    };
  }
}

function advanced(
  { batchCount, rowCount, insertedCount, updatedCount }: StreamProgress,
  count: number,
  result: WriteResult,
): StreamProgress {
  return {
    batchCount: batchCount + 1,
    rowCount: rowCount + count,
    insertedCount: insertedCount + result.insertedCount,
    updatedCount: updatedCount + result.updatedCount,
    sequence: result.sequence,
  };
}

/** A stream with an idempotency key: knows the progress of earlier attempts and checks that this is the same stream. */
class KeyedStream {
  readonly #claim: Claim;
  readonly #key: string;
  readonly #incarnation: string;
  readonly earlier: StreamProgress;
  readonly #earlierChain: string;
  #batchCount = 0;
  #rowCount = 0;
  #chain = '';

  constructor(claim: Claim, key: string, collection: Collection) {
    this.#claim = claim;
    this.#key = key;
    this.#incarnation = collection.incarnation;
    const { stored } = claim;
    // Rows of a replaced collection are not in this one; a complete stream is only replayed.
    const isCurrent = stored?.reply != null || stored?.stream?.incarnation === this.#incarnation;
    this.earlier = (isCurrent && stored?.stream?.progress) || NO_PROGRESS;
    this.#earlierChain = (isCurrent && stored?.stream?.chain) || '';
  }

  /** A digest over all batches so far. */
  get chain(): string {
    return this.#chain;
  }

  /** Whether an earlier attempt made the next batch durable, so that it is skipped. Throws `idempotency_key_reused`. */
  skip(rowCount: number, digest: string): boolean {
    const isComplete = this.#claim.stored?.reply != null;
    if (isComplete && this.#batchCount === this.earlier.batchCount) throw keyReused(this.#key);
    this.#chain = createHash('sha256').update(`${this.#chain}:${digest}`).digest('hex');
    this.#batchCount++;
    this.#rowCount += rowCount;
    if (this.#batchCount > this.earlier.batchCount) return false;
    if (this.#batchCount === this.earlier.batchCount) this.#compare();
    return true;
  }

  /** The reply of an earlier attempt; null for none. Throws `idempotency_key_reused`. */
  end(): object | null {
    if (this.#batchCount < this.earlier.batchCount) throw keyReused(this.#key);
    return this.#claim.stored?.reply ?? null;
  }

  storeProgress(progress: StreamProgress, chain: string): StoreOperation[] {
    return this.#claim.storeProgress({ incarnation: this.#incarnation, progress, chain });
  }

  storeReply(reply: object, progress: StreamProgress): StoreOperation[] {
    const stream = { incarnation: this.#incarnation, progress, chain: this.#chain };
    return this.#claim.storeReply(reply, stream);
  }

  release(): void {
    this.#claim.release();
  }

  #compare(): void {
    const isSame = this.#chain === this.#earlierChain && this.#rowCount === this.earlier.rowCount;
    if (!isSame) throw keyReused(this.#key);
  }
}
