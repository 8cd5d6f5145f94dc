// Rate limits: each principal has two token buckets, one for reads and one for writes. Our own code,
// since the cost of a request (vectors, queries) is known only after its body was parsed, and the
// request may then leave the bucket in debt. No timers: a bucket is refilled when it is accessed.

import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { RouteAccess } from '../auth/authorization.js';

/** The bucket that a request takes from. */
export type RateKind = 'read' | 'write';

interface RateLimiterOptions {
  readonly limits: Pick<Limits, 'readRateMax' | 'readBurstMax' | 'writeRateMax' | 'writeBurstMax'>;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

interface Bucket {
  /** Negative after a request that cost more than was available. */
  tokens: number;
  filledAtMs: number;
}

/** The bucket of a route, by the scope that it requires; null for routes without a rate limit. */
export function rateKindOf(access: RouteAccess): RateKind | null {
  if (typeof access === 'string' || access.scope === 'metrics:read') return null;
  return access.scope.endsWith(':read') ? 'read' : 'write';
}

export class RateLimiter {
  readonly #tables: Readonly<Record<RateKind, BucketTable>>;

  constructor({ limits, nowMs }: RateLimiterOptions) {
    const { readRateMax, readBurstMax, writeRateMax, writeBurstMax } = limits;
    this.#tables = {
      read: new BucketTable('read', readRateMax, readBurstMax, nowMs),
      write: new BucketTable('write', writeRateMax, writeBurstMax, nowMs),
    };
  }

  /** The number of buckets in memory, of both kinds. */
  get bucketCount(): number {
    return this.#tables.read.bucketCount + this.#tables.write.bucketCount;
  }

  /** The bucket of this principal, for one request; null if the rate is unlimited. */
  allowanceOf(kind: RateKind, principalId: string): Allowance | null {
    const table = this.#tables[kind];
    return table.isBounded ? new Allowance(table, principalId) : null;
  }
}

/** The bucket of one principal as one request uses it. */
export class Allowance {
  readonly #table: BucketTable;
  readonly #principalId: string;
  /** Tokens taken by this request. */
  #paid = 0;

  constructor(table: BucketTable, principalId: string) {
    this.#table = table;
    this.#principalId = principalId;
  }

  /**
   * Takes the tokens by which `cost` exceeds what this request has taken before. A cost above the
   * burst needs a full bucket and leaves it in debt. A refused request gets no tokens back, since
   * reading it was work. Throws `rate_limited`.
   */
  charge(cost: number): void {
    this.#table.take(this.#principalId, cost, this.#paid);
    this.#paid = Math.max(this.#paid, cost);
  }

  /**
   * Takes the cost of one batch of a stream. Returns 0, or the milliseconds after which to try again,
   * since a stream waits rather than being refused.
   */
  chargeOrWaitMs(cost: number): number {
    return this.#table.takeOrWait(this.#principalId, cost);
  }

  /** The header RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers. */
  get policy(): string {
    return this.#table.policy;
  }

  /** The header RateLimit of that draft: tokens left, and seconds until the bucket is full. */
  get state(): string {
    return this.#table.describe(this.#principalId);
  }
}

/** With fewer buckets, full ones are not looked for. */
const BUCKETS_KEPT_MIN = 1_024;

/** Tolerates rounding errors, so that waiting for as long as Retry-After says is enough. */
const ROUNDING = 1e-6;

class BucketTable {
  readonly #kind: RateKind;
  /** Tokens per second. */
  readonly #rate: number;
  readonly #burst: number;
  readonly #nowMs: () => number;
  readonly #buckets = new Map<string, Bucket>();
  #sweepAtCount = BUCKETS_KEPT_MIN;
  readonly policy: string;

  constructor(kind: RateKind, rate: number, burst: number, nowMs: () => number) {
    this.#kind = kind;
    this.#rate = rate;
    this.#burst = burst;
    this.#nowMs = nowMs;
    this.policy = `"${kind}";q=${burst};w=${Math.ceil(burst / Math.max(rate, 1))}`;
  }

  get isBounded(): boolean {
    return this.#rate > 0;
  }

  get bucketCount(): number {
    return this.#buckets.size;
  }

  /** Takes `cost` minus `paid` tokens. Throws `rate_limited`, and then takes none. */
  take(principalId: string, cost: number, paid: number): void {
    const owed = cost - paid;
    if (owed <= 0) return;
    const bucket = this.#filled(principalId);
    const needed = Math.min(cost, this.#burst);
    // A retry pays the whole cost again, so the bucket must hold all of it.
    if (needed - paid - bucket.tokens > ROUNDING)
      throw this.#limitError(cost, needed - bucket.tokens);
    bucket.tokens -= owed;
  }

  takeOrWait(principalId: string, cost: number): number {
    const bucket = this.#filled(principalId);
    const missing = Math.min(cost, this.#burst) - bucket.tokens;
    if (missing > ROUNDING) return Math.ceil((missing / this.#rate) * 1000);
    bucket.tokens -= cost;
    return 0;
  }

  describe(principalId: string): string {
    const { tokens } = this.#filled(principalId);
    const left = Math.max(0, Math.floor(tokens));
    const seconds = Math.ceil((this.#burst - tokens) / this.#rate);
    return `"${this.#kind}";r=${left};t=${seconds}`;
  }

  #filled(principalId: string): Bucket {
    const nowMs = this.#nowMs();
    let bucket = this.#buckets.get(principalId);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepAtCount) this.#sweep(nowMs);
      bucket = { tokens: this.#burst, filledAtMs: nowMs };
      this.#buckets.set(principalId, bucket);
    } else {
      bucket.tokens = this.#tokensAt(bucket, nowMs);
      bucket.filledAtMs = nowMs;
    }
    return bucket;
  }

  #tokensAt({ tokens, filledAtMs }: Bucket, nowMs: number): number {
    return Math.min(this.#burst, tokens + ((nowMs - filledAtMs) / 1000) * this.#rate);
  }

  /**
   * Removes full buckets, which carry no information. The next sweep waits until the number of
   * buckets has doubled, so that the cost per new bucket is constant.
   */
  #sweep(nowMs: number): void {
    for (const [principalId, bucket] of this.#buckets) {
      if (this.#tokensAt(bucket, nowMs) >= this.#burst) this.#buckets.delete(principalId);
    }
    this.#sweepAtCount = Math.max(BUCKETS_KEPT_MIN, 2 * this.#buckets.size);
  }

  #limitError(cost: number, missing: number): SagittaError {
    const seconds = Math.max(1, Math.ceil(missing / this.#rate));
    return new SagittaError(
      'rate_limited',
      `The request costs ${cost} ${this.#kind}${cost === 1 ? '' : 's'}, more than this credential has left (limit ${this.#rate} per second, burst ${this.#burst}). Retry after ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  }
}
