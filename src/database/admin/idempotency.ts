// Idempotency keys: a request that is sent twice with one key takes effect once, and the stored reply is sent
// again. Reply and effect are committed in one transaction, so that no crash can separate them. At most one request
// at a time works under a key without a reply. An entry is stored under a digest of scope and key, and expires. It
// belongs to one write (`runIdempotent`) or to a stream of writes (collection/write-stream.ts).

import { hash } from 'node:crypto';
import type { Clock } from '../../common/clock.js';
import { overloadedError, SagittaError } from '../../common/errors.js';
import type { CommitLog, CommitLogs } from '../../storage/commit-log.js';
import type { Store, StoreOperation } from '../../storage/store.js';
import type { IdempotencyRequest, StreamProgress } from '../api/database-api.js';
import type { DatabaseObserver } from '../api/observer.js';
import { keys } from '../layout/keys.js';

/** The progress of a stream, and a digest that recognises the stream when it is sent again. */
export interface StreamEntry {
  /** The incarnation of the collection with the rows; a later collection with the same id has none of them. */
  readonly incarnation: string;
  readonly progress: StreamProgress;
  /** SHA-256, in hexadecimal, over the chain before the last batch and that batch's digest. */
  readonly chain: string;
}

/** What is stored under a key, as JSON. */
export interface StoredEntry {
  readonly payloadDigest: string;
  readonly expiresAtMs: number;
  /** Opaque JSON of the caller; null while a stream is incomplete. */
  readonly reply: object | null;
  /** Present for streams. */
  readonly stream?: StreamEntry;
}

/** A short digest, because keys are in memory and the payload is compared as well. */
const DIGEST_BYTES = 16;
/** Each new reply removes up to this many expired entries, so that they are removed as fast as they are added. */
const EXPIRED_REMOVED_PER_REPLY = 4;

/**
 * The reply to a write, stored in the transaction of the write. `runIdempotent` creates it, and its caller only
 * passes it to the write.
 */
export class AttachedReply<Result> {
  readonly #operations: (result: Result) => readonly StoreOperation[];

  constructor(operations: (result: Result) => readonly StoreOperation[]) {
    this.#operations = operations;
  }

  /** The operations that store the reply, once the result of the write is known. */
  operations(result: Result): readonly StoreOperation[] {
    return this.#operations(result);
  }
}

/** Creates the reply that is stored with a write from the result of the write. */
export type AttachReply<Reply extends object> = <Result>(
  encode: (result: Result) => Reply,
) => AttachedReply<Result>;

/** See Database.runIdempotent. */
export async function runIdempotent<Reply extends object>(
  idempotencyKeys: IdempotencyKeys,
  observer: DatabaseObserver,
  request: IdempotencyRequest,
  perform: (attach: AttachReply<Reply>) => Promise<Reply>,
): Promise<{ reply: Reply; isReplay: boolean }> {
  const countOutcome = (outcome: string) =>
    observer.count('sagitta_idempotent_requests_total', 1, { outcome });
  let claim: Claim;
  try {
    claim = await idempotencyKeys.claim(request);
  } catch (error) {
    if (error instanceof SagittaError && error.code.startsWith('idempotency_'))
      countOutcome(error.code);
    throw error;
  }
  try {
    const stored = claim.stored?.reply;
    if (stored != null) {
      countOutcome('replayed');
      return { reply: stored as Reply, isReplay: true };
    }
    let isAttached = false;
    const reply = await perform(
      (encode) =>
        new AttachedReply((result) => {
          isAttached = true;
          return claim.storeReply(encode(result));
        }),
    );
    if (!isAttached) await idempotencyKeys.commit(claim.storeReply(reply), request.incarnation);
    countOutcome('kept');
    return { reply, isReplay: false };
  } finally {
    claim.release();
  }
}

interface KeysOptions {
  readonly store: Store;
  readonly logs: CommitLogs;
  readonly clock: Clock;
  readonly keptMs: number;
  /** The number of keys that are kept. */
  readonly countMax: number;
}

export class IdempotencyKeys {
  readonly #options: KeysOptions;
  readonly #payloadDigestsInFlight = new Map<string, string>();
  /** The newest claims whose replies the store may not have yet, by digest. */
  readonly #unstored = new Map<string, Claim>();

  constructor(options: KeysOptions) {
    this.#options = options;
  }

  /** The caller releases the claim. Throws `idempotency_in_flight`, `idempotency_key_reused` and `overloaded`. */
  async claim(request: IdempotencyRequest): Promise<Claim> {
    const { key, payloadDigest, incarnation } = request;
    // Replies that earlier attempts received may not be stored yet.
    const storing = this.#logOf(incarnation).whenStored();
    if (storing !== undefined) await storing;
    const digest = hash('sha256', JSON.stringify([request.scope, key]), 'buffer')
      .subarray(0, DIGEST_BYTES)
      .toString('base64url');
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
    if (stored === undefined) this.#requireRoom();
    const isReplay = stored !== undefined && stored.reply !== null;
    const claim = new Claim({
      stored,
      digest,
      payloadDigest,
      ...this.#options,
      removeExpired: (now) => this.#removeExpired(now),
      onReleased: () => {
        if (isReplay) return;
        this.#payloadDigestsInFlight.delete(digest);
        void this.#forgetWhenStored(digest, claim, incarnation);
      },
    });
    // Any number of requests may receive a stored reply at the same time.
    if (isReplay) return claim;
    this.#payloadDigestsInFlight.set(digest, payloadDigest);
    this.#unstored.set(digest, claim);
    return claim;
  }

  #requireRoom(): void {
    const { store, clock, countMax } = this.#options;
    if (store.count(keys.idempotentExpiries) < countMax) return;
    const [oldest] = store.list(keys.idempotentExpiries);
    const leftMs = Number(oldest!.key[2]) - clock.now();
    // Each new reply removes expired ones.
    if (leftMs <= 0) return;
    throw overloadedError(
      `${countMax} idempotency keys are stored, the most that are allowed, and the oldest expires in ${Math.ceil(leftMs / 1000)} s. Send the request without a key, or raise SAGITTA_IDEMPOTENCY_KEYS_MAX.`,
      { retryAfterSeconds: Math.ceil(leftMs / 1000) },
    );
  }

  async #forgetWhenStored(
    digest: string,
    claim: Claim,
    incarnation: string | undefined,
  ): Promise<void> {
    try {
      await this.#logOf(incarnation).whenStored();
    } catch {
      // The log will be read again.
    }
    if (this.#unstored.get(digest) === claim) this.#unstored.delete(digest);
  }

  /** Commits a reply alone, to the log of a collection after its writes, or to the log of the catalogue. */
  commit(operations: readonly StoreOperation[], incarnation: string | undefined): Promise<void> {
    return this.#logOf(incarnation).commit(operations);
  }

  #logOf(incarnation: string | undefined): CommitLog {
    const { logs } = this.#options;
    return incarnation === undefined ? logs.catalogue : logs.ofReplies(incarnation);
  }

  #read(digest: string): StoredEntry | undefined {
    const value = this.#options.store.get(keys.idempotentReply(digest));
    if (value === undefined) return undefined;
    const entry = JSON.parse(Buffer.from(value).toString()) as StoredEntry;
    return entry.expiresAtMs > this.#options.clock.now() ? entry : undefined;
  }

  /** Whether an unexpired reply may exist. A damaged one stays, and requests with its key are refused. */
  #mayHaveReply(digest: string): boolean {
    try {
      return this.#read(digest) !== undefined;
    } catch (error) {
      if (!(error instanceof SagittaError) || error.code !== 'data_corrupt') throw error;
      return true;
    }
  }

  #removeExpired(now: number): StoreOperation[] {
    const operations: StoreOperation[] = [];
    let count = 0;
    for (const { key } of this.#options.store.list(keys.idempotentExpiries)) {
      const expiresAtMs = Number(key[2]);
      const digest = key[3]!;
      if (expiresAtMs > now || count++ === EXPIRED_REMOVED_PER_REPLY) break;
      // The key may get a newer reply in the same commit or an earlier one.
      if (this.#unstored.has(digest)) continue;
      operations.push({ kind: 'remove', key });
      // A key that was reused after it expired has a newer reply, which stays.
      if (!this.#mayHaveReply(digest)) {
        operations.push({ kind: 'remove', key: keys.idempotentReply(digest) });
      }
    }
    return operations;
  }
}

interface ClaimOptions extends Pick<KeysOptions, 'clock' | 'keptMs'> {
  readonly stored: StoredEntry | undefined;
  readonly digest: string;
  readonly payloadDigest: string;
  readonly removeExpired: (now: number) => StoreOperation[];
  readonly onReleased: () => void;
}

/** Exclusive use of a key by one request. */
export class Claim {
  readonly #options: ClaimOptions;
  /** Expiry of the entry that is stored or being stored; 0 for none. */
  #expiresAtMs: number;

  constructor(options: ClaimOptions) {
    this.#options = options;
    this.#expiresAtMs = options.stored?.expiresAtMs ?? 0;
  }

  /** The entry that an earlier request with the key stored. */
  get stored(): StoredEntry | undefined {
    return this.#options.stored;
  }

  /** Restarts the time for which the reply is kept. */
  storeReply(reply: object, stream?: StreamEntry): StoreOperation[] {
    return [...this.#renew(), this.#put(reply, stream)];
  }

  /** Called for every batch of a stream. Restarts the time only when half of it has passed. */
  storeProgress(stream: StreamEntry): StoreOperation[] {
    const { clock, keptMs } = this.#options;
    const isOld = this.#expiresAtMs - clock.now() < keptMs / 2;
    return [...(isOld ? this.#renew() : []), this.#put(null, stream)];
  }

  /** May be called more than once. */
  release(): void {
    this.#options.onReleased();
  }

  #renew(): StoreOperation[] {
    const { clock, digest, keptMs, removeExpired } = this.#options;
    const now = clock.now();
    const operations = removeExpired(now);
    if (this.#expiresAtMs > 0) {
      const key = keys.idempotentExpiry(this.#expiresAtMs, digest);
      operations.push({ kind: 'remove', key });
    }
    this.#expiresAtMs = now + keptMs;
    const key = keys.idempotentExpiry(this.#expiresAtMs, digest);
    operations.push({ kind: 'put', key, value: new Uint8Array(0) });
    return operations;
  }

  #put(reply: object | null, stream: StreamEntry | undefined): StoreOperation {
    const { digest, payloadDigest } = this.#options;
    const entry: StoredEntry = {
      payloadDigest,
      expiresAtMs: this.#expiresAtMs,
      reply,
      ...(stream === undefined ? {} : { stream }),
    };
    return {
      kind: 'put',
      key: keys.idempotentReply(digest),
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
