// How much one principal may ask: two token buckets each, for reads and for writes. Own code, since
// what a request costs (vectors, queries) is known only when its body has been read, and then it may
// leave the bucket in debt. No timer: a bucket is filled up when somebody looks at it.

import { SagittaError } from '../../common/errors.js';
import type { Limits } from '../../common/limits.js';
import type { RouteAccess } from '../auth/authorization.js';

/** Which bucket a request takes from. */
export type RateKind = 'read' | 'write';

export interface RateLimiterOptions {
  readonly limits: Pick<Limits, 'readRateMax' | 'readBurstMax' | 'writeRateMax' | 'writeBurstMax'>;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
}

interface Bucket {
  /** Below zero after a request that cost more than there was. */
  tokens: number;
  filledAtMs: number;
}

/** What a route takes from, by the scope that it asks for; null where nothing is counted. */
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

  /** Principals that are remembered, of both kinds. */
  get bucketCount(): number {
    return this.#tables.read.bucketCount + this.#tables.write.bucketCount;
  }

  /** What this principal has left; null where there is no bound. */
  allowanceOf(kind: RateKind, principalId: string): Allowance | null {
    const table = this.#tables[kind];
    return table.isBounded ? new Allowance(table, principalId) : null;
  }
}

/** What is left to one principal while one request of its is under way. */
export class Allowance {
  readonly #table: BucketTable;
  readonly #principalId: string;
  /** What this request has paid. */
  #paid = 0;

  constructor(table: BucketTable, principalId: string) {
    this.#table = table;
    this.#principalId = principalId;
  }

  /**
   * Takes what `cost` is above what was paid before. A cost above the burst needs a full bucket and
   * leaves it in debt: it is possible, and paid for by waiting. What a refused request has paid is
   * not given back, since reading it was work. Throws `rate_limited`.
   */
  charge(cost: number): void {
    this.#table.take(this.#principalId, cost, this.#paid);
    this.#paid = Math.max(this.#paid, cost);
  }

  /**
   * Takes the cost of one of many parts of a stream, which makes it wait rather than refuses it: the
   * milliseconds after which to try again, 0 when it is paid.
   */
  chargeOrWaitMs(cost: number): number {
    return this.#table.takeOrWait(this.#principalId, cost);
  }

  /** As in draft-ietf-httpapi-ratelimit-headers: the same on every reply. */
  get policy(): string {
    return this.#table.policy;
  }

  /** As in that draft: what is left, and the seconds until all of it is there again. */
  get state(): string {
    return this.#table.describe(this.#principalId);
  }
}

/** Fewer buckets are not worth looking through for full ones. */
const BUCKETS_KEPT_MIN = 1_024;

/** Who waited as long as it was told finds enough, whatever the sum of fractions comes to. */
const ROUNDING = 1e-6;

class BucketTable {
  readonly #kind: RateKind;
  /** Tokens a second. */
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

  /** Takes `cost` less what was `paid` of it. Throws `rate_limited`, and then takes nothing. */
  take(principalId: string, cost: number, paid: number): void {
    const owed = cost - paid;
    if (owed <= 0) return;
    const bucket = this.#filled(principalId);
    const needed = Math.min(cost, this.#burst);
    // What was paid is lost with the refusal: the next attempt pays all of it.
    if (needed - paid - bucket.tokens > ROUNDING) throw this.#refusal(cost, needed - bucket.tokens);
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
   * Forgets the buckets that are full, which say no more than none does. What stays is in use; by
   * waiting until there are twice as many, each new bucket pays for looking at two old ones.
   */
  #sweep(nowMs: number): void {
    for (const [principalId, bucket] of this.#buckets) {
      if (this.#tokensAt(bucket, nowMs) >= this.#burst) this.#buckets.delete(principalId);
    }
    this.#sweepAtCount = Math.max(BUCKETS_KEPT_MIN, 2 * this.#buckets.size);
  }

  #refusal(cost: number, missing: number): SagittaError {
    const seconds = Math.max(1, Math.ceil(missing / this.#rate));
    return new SagittaError(
      'rate_limited',
      `This costs ${cost} ${this.#kind}${cost === 1 ? '' : 's'}; the credential has ${this.#rate} a second, saved up to ${this.#burst}, and too few are left. In ${seconds} s there are enough.`,
      { retryAfterSeconds: seconds },
    );
  }
}
