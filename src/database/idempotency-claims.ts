// What is kept under idempotency keys, and who holds one now: at most one request at a time. An entry
// is found by a digest of scope and key, and goes when its time is over. What an entry is about is
// for those who claim it: whole replies (idempotency.ts) and streams (write-stream.ts).

import { createHash } from 'node:crypto';
import type { Clock } from '../common/clock.js';
import { SagittaError } from '../common/errors.js';
import type { Store, StoreOperation } from '../storage/store.js';
import type { IdempotencyRequest, StoredReply, StreamProgress } from './api.js';
import { keys } from './keys.js';

/** What of a stream is durable, and how to recognise it. */
export interface StreamEntry {
  /** Of the collection that has the rows: another one under the same id has none of them. */
  readonly incarnation: string;
  readonly progress: StreamProgress;
  /** SHA-256 over the chain before the last batch and that batch's digest, in hexadecimal. */
  readonly chain: string;
}

export interface StoredEntry {
  readonly payloadDigest: string;
  readonly expiresAtMs: number;
  /** Null while a stream is not complete. */
  readonly reply: StoredReply | null;
  /** Of streams only. */
  readonly stream?: StreamEntry;
}

/** Each new reply removes up to this many expired ones, so that they go as fast as they come. */
const EXPIRED_REMOVED_PER_REPLY = 4;

export class IdempotencyClaims {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #keptMs: number;
  readonly #payloadDigestsInFlight = new Map<string, string>();

  constructor(options: { store: Store; clock: Clock; keptMs: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#keptMs = options.keptMs;
  }

  /** Throws `idempotency_in_flight` and `idempotency_key_reused`. Whoever gets it releases it. */
  claim(request: IdempotencyRequest): Claim {
    const { key, payloadDigest } = request;
    const digest = createHash('sha256')
      .update(JSON.stringify([request.scope, key]))
      .digest('hex');
    const inFlight = this.#payloadDigestsInFlight.get(digest);
    if (inFlight !== undefined) {
      if (inFlight !== payloadDigest) throw keyReused(key);
      throw new SagittaError(
        'idempotency_in_flight',
        `A request with the idempotency key "${key}" is still running; retry when it has ended.`,
        { retryAfterSeconds: 1 },
      );
    }
    const stored = this.#read(digest);
    if (stored !== undefined && stored.payloadDigest !== payloadDigest) throw keyReused(key);
    this.#payloadDigestsInFlight.set(digest, payloadDigest);
    return new Claim({
      stored,
      digest,
      payloadDigest,
      clock: this.#clock,
      keptMs: this.#keptMs,
      removeExpired: (now) => this.#removeExpired(now),
      onReleased: () => this.#payloadDigestsInFlight.delete(digest),
    });
  }

  commit(operations: readonly StoreOperation[]): Promise<void> {
    return this.#store.commit(operations);
  }

  #read(digest: string): StoredEntry | undefined {
    const value = this.#store.get(keys.idempotentReply(digest));
    if (value === undefined) return undefined;
    const entry = JSON.parse(Buffer.from(value).toString()) as StoredEntry;
    return entry.expiresAtMs > this.#clock.now() ? entry : undefined;
  }

  #removeExpired(now: number): StoreOperation[] {
    const operations: StoreOperation[] = [];
    let count = 0;
    for (const { key } of this.#store.list(keys.idempotentExpiries)) {
      const expiresAtMs = Number(key[2]);
      const digest = key[3]!;
      if (expiresAtMs > now || count++ === EXPIRED_REMOVED_PER_REPLY) break;
      operations.push({ kind: 'remove', key });
      // A key that was used again after it expired has a younger reply, which stays.
      if (this.#read(digest) === undefined) {
        operations.push({ kind: 'remove', key: keys.idempotentReply(digest) });
      }
    }
    return operations;
  }
}

/** One request's hold on its key. */
export class Claim {
  /** What earlier requests with the key have left. */
  readonly stored: StoredEntry | undefined;
  readonly #digest: string;
  readonly #payloadDigest: string;
  readonly #clock: Clock;
  readonly #keptMs: number;
  readonly #removeExpired: (now: number) => StoreOperation[];
  readonly #onReleased: () => void;
  /** Of the entry that is on its way to the disk, or there; 0 for none. */
  #expiresAtMs: number;

  constructor(options: {
    stored: StoredEntry | undefined;
    digest: string;
    payloadDigest: string;
    clock: Clock;
    keptMs: number;
    removeExpired: (now: number) => StoreOperation[];
    onReleased: () => void;
  }) {
    this.stored = options.stored;
    this.#digest = options.digest;
    this.#payloadDigest = options.payloadDigest;
    this.#clock = options.clock;
    this.#keptMs = options.keptMs;
    this.#removeExpired = options.removeExpired;
    this.#onReleased = options.onReleased;
    this.#expiresAtMs = options.stored?.expiresAtMs ?? 0;
  }

  /** The time that a reply is kept begins with it. */
  keepReply(reply: StoredReply, stream?: StreamEntry): StoreOperation[] {
    return [...this.#renew(), this.#put(reply, stream)];
  }

  /** An entry is put with every batch of a stream: its time begins anew when half of it is over. */
  keepProgress(stream: StreamEntry): StoreOperation[] {
    const isOld = this.#expiresAtMs - this.#clock.now() < this.#keptMs / 2;
    return [...(isOld ? this.#renew() : []), this.#put(null, stream)];
  }

  /** Any number of times. */
  release(): void {
    this.#onReleased();
  }

  #renew(): StoreOperation[] {
    const now = this.#clock.now();
    const operations = this.#removeExpired(now);
    if (this.#expiresAtMs > 0) {
      operations.push({
        kind: 'remove',
        key: keys.idempotentExpiry(this.#expiresAtMs, this.#digest),
      });
    }
    this.#expiresAtMs = now + this.#keptMs;
    const key = keys.idempotentExpiry(this.#expiresAtMs, this.#digest);
    operations.push({ kind: 'put', key, value: new Uint8Array(0) });
    return operations;
  }

  #put(reply: StoredReply | null, stream: StreamEntry | undefined): StoreOperation {
    const entry: StoredEntry = {
      payloadDigest: this.#payloadDigest,
      expiresAtMs: this.#expiresAtMs,
      reply,
      ...(stream === undefined ? {} : { stream }),
    };
    return {
      kind: 'put',
      key: keys.idempotentReply(this.#digest),
      value: Buffer.from(JSON.stringify(entry)),
    };
  }
}

export function keyReused(key: string): SagittaError {
  return new SagittaError(
    'idempotency_key_reused',
    `The idempotency key "${key}" was used with another payload; use a new key for a new request.`,
  );
}
