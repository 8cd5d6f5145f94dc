// Idempotency keys: a write that is sent twice happens once. The reply is committed together with
// the effect, so that a crash between the two cannot be seen; requests that are still running are
// known by an entry in memory.

import { createHash } from 'node:crypto';
import type { Clock } from '../clock.js';
import { SagittaError } from '../errors.js';
import type { Store, StoreOperation } from '../store/store.js';
import type { AlsoCommit, IdempotencyRequest, StoredReply } from './api.js';
import { keys } from './keys.js';

interface StoredEntry {
  readonly payloadDigest: string;
  readonly expiresAtMs: number;
  readonly reply: StoredReply;
}

/** Each new reply removes up to this many expired ones, so that they go as fast as they come. */
const EXPIRED_REMOVED_PER_REPLY = 4;

export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #keptMs: number;
  readonly #payloadDigestsInFlight = new Map<string, string>();

  constructor(options: { store: Store; clock: Clock; keptMs: number }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#keptMs = options.keptMs;
  }

  /** See DatabaseService.runIdempotent. */
  async run(
    request: IdempotencyRequest,
    perform: (
      attach: <Result>(encode: (result: Result) => StoredReply) => AlsoCommit<Result>,
    ) => Promise<StoredReply>,
  ): Promise<{ reply: StoredReply; isReplay: boolean }> {
    const digest = createHash('sha256')
      .update(JSON.stringify([request.scope, request.key]))
      .digest('hex');
    const inFlight = this.#payloadDigestsInFlight.get(digest);
    if (inFlight !== undefined) {
      if (inFlight !== request.payloadDigest) throw reused(request.key);
      throw new SagittaError(
        'idempotency_in_flight',
        `A request with the idempotency key "${request.key}" is still running; retry when it has ended.`,
        { retryAfterSeconds: 1 },
      );
    }
    const stored = this.#read(digest);
    if (stored !== undefined) {
      if (stored.payloadDigest !== request.payloadDigest) throw reused(request.key);
      return { reply: stored.reply, isReplay: true };
    }
    this.#payloadDigestsInFlight.set(digest, request.payloadDigest);
    try {
      let isAttached = false;
      const operationsFor = (reply: StoredReply) =>
        this.#operations(digest, request.payloadDigest, reply);
      const reply = await perform((encode) => (result) => {
        isAttached = true;
        return operationsFor(encode(result));
      });
      if (!isAttached) await this.#store.commit(operationsFor(reply));
      return { reply, isReplay: false };
    } finally {
      this.#payloadDigestsInFlight.delete(digest);
    }
  }

  #read(digest: string): StoredEntry | undefined {
    const value = this.#store.get(keys.idempotentReply(digest));
    if (value === undefined) return undefined;
    const entry = JSON.parse(Buffer.from(value).toString()) as StoredEntry;
    return entry.expiresAtMs > this.#clock.now() ? entry : undefined;
  }

  #operations(digest: string, payloadDigest: string, reply: StoredReply): StoreOperation[] {
    const now = this.#clock.now();
    const expiresAtMs = now + this.#keptMs;
    const entry: StoredEntry = { payloadDigest, expiresAtMs, reply };
    return [
      ...this.#expired(now),
      {
        kind: 'put',
        key: keys.idempotentReply(digest),
        value: Buffer.from(JSON.stringify(entry)),
      },
      { kind: 'put', key: keys.idempotentExpiry(expiresAtMs, digest), value: new Uint8Array(0) },
    ];
  }

  #expired(now: number): StoreOperation[] {
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

function reused(key: string): SagittaError {
  return new SagittaError(
    'idempotency_key_reused',
    `The idempotency key "${key}" was used with another payload; use a new key for a new request.`,
  );
}
