// A stream of writes into one collection: batch after batch, each atomic, so that what is durable is
// always a beginning of the stream. After a failure nothing more of it is written. Under an
// idempotency key every batch commits with a note of how far the stream has come, and another attempt
// passes over what is durable already.

import { createHash } from 'node:crypto';
import type { Clock } from '../../common/clock.js';
import { assert } from '../../common/errors.js';
import { ReusedBytes } from '../../common/reused-bytes.js';
import type { VectorBatch } from '../../common/types.js';
import type { StoreOperation } from '../../storage/store.js';
import type {
  IdempotencyRequest,
  OnCommitted,
  StoredReply,
  StreamProgress,
  WriteMode,
  WriteResult,
  WriteStream,
} from '../api.js';
import { type Claim, type IdempotencyClaims, keyReused } from '../idempotency-claims.js';
import type { DatabaseObserver } from '../observer.js';
import type { Collection } from './collection.js';
import type { Write } from './writer.js';
import { writeVectors } from './writes.js';

export interface WriteStreamOptions {
  readonly collection: Collection;
  readonly mode: WriteMode;
  readonly clock: Clock;
  readonly observer: DatabaseObserver;
  readonly claims: IdempotencyClaims;
  readonly idempotency: IdempotencyRequest | undefined;
}

/** One is on its way to the disk, and one waits. */
const RECORDS_KEPT_MAX = 2;

export const NO_PROGRESS: StreamProgress = {
  batchCount: 0,
  rowCount: 0,
  insertedCount: 0,
  updatedCount: 0,
  sequence: undefined,
};

/** Throws `idempotency_in_flight` and `idempotency_key_reused`. */
export function openWriteStream(options: WriteStreamOptions): WriteStream {
  const { claims, idempotency } = options;
  if (idempotency === undefined) return new CollectionWriteStream(options, null);
  const keyed = new KeyedStream(claims.claim(idempotency), idempotency.key, options.collection);
  return new CollectionWriteStream(options, keyed);
}

class CollectionWriteStream implements WriteStream {
  readonly #options: WriteStreamOptions;
  readonly #keyed: KeyedStream | null;
  readonly #resumed: StreamProgress;
  /** With what was handed to the store, and with what is on disk. */
  #prepared: StreamProgress;
  #durable: StreamProgress;
  #failure: { readonly error: unknown } | undefined;
  readonly #recordBytes = new ReusedBytes((byteCount) => new ArrayBuffer(byteCount), {
    countMax: RECORDS_KEPT_MAX,
  });

  constructor(options: WriteStreamOptions, keyed: KeyedStream | null) {
    this.#options = options;
    this.#keyed = keyed;
    this.#resumed = keyed?.earlier ?? NO_PROGRESS;
    this.#prepared = this.#resumed;
    this.#durable = this.#resumed;
  }

  get resumed(): StreamProgress {
    return this.#resumed;
  }

  get progress(): StreamProgress {
    return this.#durable;
  }

  async write(
    batch: VectorBatch,
    { digest, onCommitted }: { digest?: string | undefined; onCommitted?: OnCommitted } = {},
  ): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    let chain: string | undefined;
    if (this.#keyed !== null) {
      assert(digest !== undefined, 'a stream with a key says what its batches are');
      if (this.#passOver(this.#keyed, batch, digest)) return;
      chain = this.#keyed.chain;
    }
    const { collection, observer } = this.#options;
    const result = await collection.write(this.#toWrite(batch, chain), onCommitted);
    this.#durable = advanced(this.#durable, batch.count, result);
    observer.vectorsWritten(result.insertedCount, result.updatedCount);
  }

  async end(
    encode: (progress: StreamProgress) => StoredReply,
  ): Promise<{ reply: StoredReply; isReplay: boolean }> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const { claims } = this.#options;
    const kept = this.#keyed?.end();
    if (kept != null) return { reply: kept, isReplay: true };
    const reply = encode(this.#durable);
    if (this.#keyed !== null) await claims.commit(this.#keyed.keepReply(reply, this.#durable));
    return { reply, isReplay: false };
  }

  close(): void {
    this.#keyed?.release();
  }

  #passOver(keyed: KeyedStream, batch: VectorBatch, digest: string): boolean {
    try {
      return keyed.passOver(batch.count, digest);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  #toWrite(batch: VectorBatch, chain: string | undefined): Write<WriteResult> {
    const { collection, mode, clock } = this.#options;
    const alsoCommit = (result: WriteResult) => {
      this.#prepared = advanced(this.#prepared, batch.count, result);
      return chain === undefined ? [] : this.#keyed!.keepProgress(this.#prepared, chain);
    };
    const recordBytes = this.#recordBytes;
    const write = writeVectors(collection, batch, { mode, clock, alsoCommit, recordBytes });
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

/** The stream under its key: what earlier attempts have left, and whether this one is the same. */
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
    // What went into a collection that is gone is not in this one; a complete stream is only replayed.
    const isHere = stored?.reply != null || stored?.stream?.incarnation === this.#incarnation;
    this.earlier = (isHere && stored?.stream?.progress) || NO_PROGRESS;
    this.#earlierChain = (isHere && stored?.stream?.chain) || '';
  }

  /** Of everything that was passed over or is to be written. */
  get chain(): string {
    return this.#chain;
  }

  /** Whether an earlier attempt has made the next batch durable. Throws `idempotency_key_reused`. */
  passOver(rowCount: number, digest: string): boolean {
    const isComplete = this.#claim.stored?.reply != null;
    if (isComplete && this.#batchCount === this.earlier.batchCount) throw keyReused(this.#key);
    this.#chain = createHash('sha256').update(`${this.#chain}:${digest}`).digest('hex');
    this.#batchCount++;
    this.#rowCount += rowCount;
    if (this.#batchCount > this.earlier.batchCount) return false;
    if (this.#batchCount === this.earlier.batchCount) this.#compare();
    return true;
  }

  /** The reply of an earlier attempt that came so far; null for none. Throws `idempotency_key_reused`. */
  end(): StoredReply | null {
    if (this.#batchCount < this.earlier.batchCount) throw keyReused(this.#key);
    return this.#claim.stored?.reply ?? null;
  }

  keepProgress(progress: StreamProgress, chain: string): StoreOperation[] {
    return this.#claim.keepProgress({ incarnation: this.#incarnation, progress, chain });
  }

  keepReply(reply: StoredReply, progress: StreamProgress): StoreOperation[] {
    const stream = { incarnation: this.#incarnation, progress, chain: this.#chain };
    return this.#claim.keepReply(reply, stream);
  }

  release(): void {
    this.#claim.release();
  }

  #compare(): void {
    const isSame = this.#chain === this.#earlierChain && this.#rowCount === this.earlier.rowCount;
    if (!isSame) throw keyReused(this.#key);
  }
}
