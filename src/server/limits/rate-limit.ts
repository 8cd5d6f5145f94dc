// Rate limits: each principal has a token bucket for reads and one for writes, with its own limits or those of the
// service. Not a package, since the cost of a request (vectors, queries) is known only after its body has been
// parsed and may leave the bucket in debt. There are no timers: a bucket is refilled when it is accessed.

import type { Principal, RateLimit } from '../../common/access.js';
import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { RouteAccess } from '../auth/authorization.js';

/** The bucket that a request draws from. */
export type RateKind = 'read' | 'write';

interface RateLimiterOptions {
  readonly limits: Pick<Limits, 'readRateMax' | 'readBurstMax' | 'writeRateMax' | 'writeBurstMax'>;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

interface Bucket {
  readonly limit: RateLimit;
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
  /** For principals without their own limits. */
  readonly #limits: Readonly<Record<RateKind, RateLimit>>;

  constructor({ limits, nowMs }: RateLimiterOptions) {
    const { readRateMax, readBurstMax, writeRateMax, writeBurstMax } = limits;
    this.#tables = { read: new BucketTable('read', nowMs), write: new BucketTable('write', nowMs) };
    this.#limits = {
      read: { perSecond: readRateMax, burst: readBurstMax },
      write: { perSecond: writeRateMax, burst: writeBurstMax },
    };
  }

  /** The number of buckets in memory, of both kinds. */
  get bucketCount(): number {
    return this.#tables.read.bucketCount + this.#tables.write.bucketCount;
  }

  /** Access of one request to the bucket of its principal; null if the rate is unlimited. */
  allowanceOf(
    kind: RateKind,
    { id, rateLimit }: Pick<Principal, 'id' | 'rateLimit'>,
  ): Allowance | null {
    const limit = rateLimit ?? this.#limits[kind];
    return limit.perSecond > 0 ? new Allowance(this.#tables[kind], id, limit) : null;
  }
}

/** Access of one request to the bucket of its principal. */
export class Allowance {
  readonly #table: BucketTable;
  readonly #principalId: string;
  readonly #limit: RateLimit;
  /** Tokens taken by this request. */
  #paid = 0;

  constructor(table: BucketTable, principalId: string, limit: RateLimit) {
    this.#table = table;
    this.#principalId = principalId;
    this.#limit = limit;
  }

  /**
   * Takes the tokens by which `cost` exceeds what this request has already paid. A cost above the burst needs a full
   * bucket and leaves it in debt. A refused request gets no tokens back, since reading it was work. Throws
   * `rate_limited`.
   */
  charge(cost: number): void {
    if (cost <= this.#paid) return;
    this.#table.take(this.#bucket, cost, this.#paid);
    this.#paid = cost;
  }

  /** Takes the cost of a batch of a stream, which waits instead of being refused. Returns 0, or how long to wait. */
  chargeOrWaitMs(cost: number): number {
    return this.#table.takeOrWait(this.#bucket, cost);
  }

  /** The header RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers. */
  get policy(): string {
    return this.#table.describePolicy(this.#limit);
  }

  /** The header RateLimit of that draft: tokens left, and seconds until the bucket is full. */
  get state(): string {
    return this.#table.describe(this.#bucket);
  }

  get #bucket(): Bucket {
    return this.#table.filled(this.#principalId, this.#limit);
  }
}

/** With fewer buckets, full ones are not swept. */
const BUCKETS_KEPT_MIN = 1_024;

/** Tolerates rounding errors, so that waiting for the time in Retry-After is enough. */
const ROUNDING = 1e-6;

class BucketTable {
  readonly #kind: RateKind;
  readonly #nowMs: () => number;
  readonly #buckets = new Map<string, Bucket>();
  #sweepAtCount = BUCKETS_KEPT_MIN;

  constructor(kind: RateKind, nowMs: () => number) {
    this.#kind = kind;
    this.#nowMs = nowMs;
  }

  get bucketCount(): number {
    return this.#buckets.size;
  }

  /** Takes `cost` minus `paid` tokens. Throws `rate_limited` without taking any. */
  take(bucket: Bucket, cost: number, paid: number): void {
    const needed = Math.min(cost, bucket.limit.burst);
    // A retry pays the whole cost again, so the bucket must hold all of it.
    if (needed - paid - bucket.tokens > ROUNDING)
      throw this.#limitError(bucket.limit, cost, needed - bucket.tokens);
    bucket.tokens -= cost - paid;
  }

  takeOrWait(bucket: Bucket, cost: number): number {
    const { perSecond, burst } = bucket.limit;
    const missing = Math.min(cost, burst) - bucket.tokens;
    if (missing > ROUNDING) return Math.ceil((missing / perSecond) * 1000);
    bucket.tokens -= cost;
    return 0;
  }

  describePolicy({ perSecond, burst }: RateLimit): string {
    return `"${this.#kind}";q=${burst};w=${Math.ceil(burst / perSecond)}`;
  }

  describe({ tokens, limit: { perSecond, burst } }: Bucket): string {
    const left = Math.max(0, Math.floor(tokens));
    const seconds = Math.ceil((burst - tokens) / perSecond);
    return `"${this.#kind}";r=${left};t=${seconds}`;
  }

  /** The bucket of a principal with its current tokens. The limit of a principal never changes. */
  filled(principalId: string, limit: RateLimit): Bucket {
    const nowMs = this.#nowMs();
    let bucket = this.#buckets.get(principalId);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepAtCount) this.#sweep(nowMs);
      bucket = { limit, tokens: limit.burst, filledAtMs: nowMs };
      this.#buckets.set(principalId, bucket);
    } else {
      bucket.tokens = tokensAt(bucket, nowMs);
      bucket.filledAtMs = nowMs;
    }
    return bucket;
  }

  /**
   * Removes full buckets, which carry no information. The next sweep waits until the number of buckets has doubled, so
   * that the cost per new bucket is constant.
   */
  #sweep(nowMs: number): void {
    for (const [principalId, bucket] of this.#buckets) {
      if (tokensAt(bucket, nowMs) >= bucket.limit.burst) this.#buckets.delete(principalId);
    }
    this.#sweepAtCount = Math.max(BUCKETS_KEPT_MIN, 2 * this.#buckets.size);
  }

  #limitError({ perSecond, burst }: RateLimit, cost: number, missing: number): SagittaError {
    const seconds = Math.max(1, Math.ceil(missing / perSecond));
    return new SagittaError(
      'rate_limited',
      `The request costs ${cost} ${this.#kind}${cost === 1 ? '' : 's'}, more than this credential has left (limit ${perSecond} per second, burst ${burst}). Retry after ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  }
}

function tokensAt({ tokens, filledAtMs, limit }: Bucket, nowMs: number): number {
  return Math.min(limit.burst, tokens + ((nowMs - filledAtMs) / 1000) * limit.perSecond);
}
