// A circuit breaker: after a number of consecutive failures it rejects calls for a cool-down period,
// then admits one trial. It is independent of requests and errors; the caller reports each outcome.

export interface CircuitBreakerOptions {
  /** Consecutive failures after which the breaker opens. */
  readonly failuresMax: number;
  /** Milliseconds until an open breaker admits a trial. */
  readonly coolDownMs: number;
}

/** `unknown`: the caller gave up before the outcome was known. */
type Outcome = 'success' | 'failure' | 'unknown';

export type Admission =
  | { readonly kind: 'rejected'; readonly retryAfterMs: number }
  /** The caller reports the outcome once; later calls have no effect. */
  | { readonly kind: 'admitted'; readonly settle: (outcome: Outcome) => void };

export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  /** A monotonic clock in milliseconds. */
  readonly #now: () => number;
  #failureCount = 0;
  /** End of the cool-down; undefined while the breaker is closed. */
  #openUntil: number | undefined;
  /** The trial in flight, if any. */
  #trial: symbol | undefined;

  constructor(options: CircuitBreakerOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  /** Must be called before every attempt. */
  admit(): Admission {
    if (this.#openUntil === undefined) return this.#admitted(undefined);
    const waitMs = this.#openUntil - this.#now();
    if (waitMs > 0) return { kind: 'rejected', retryAfterMs: Math.ceil(waitMs) };
    // It is unknown when the trial in flight ends; the cool-down is an estimate.
    if (this.#trial !== undefined) {
      return { kind: 'rejected', retryAfterMs: this.#options.coolDownMs };
    }
    this.#trial = Symbol('trial');
    return this.#admitted(this.#trial);
  }

  #admitted(trial: symbol | undefined): Admission {
    let isSettled = false;
    return {
      kind: 'admitted',
      settle: (outcome) => {
        if (isSettled) return;
        isSettled = true;
        this.#settle(outcome, trial);
      },
    };
  }

  #settle(outcome: Outcome, trial: symbol | undefined): void {
    const isTrial = trial !== undefined && trial === this.#trial;
    if (isTrial) this.#trial = undefined;
    if (outcome === 'success') {
      this.#failureCount = 0;
      this.#openUntil = undefined;
      this.#trial = undefined;
      return;
    }
    if (outcome === 'unknown') return;
    this.#failureCount++;
    const isOpen = this.#openUntil !== undefined;
    // A request that was sent before the breaker opened and fails only now does not extend the cool-down.
    if (isTrial || (!isOpen && this.#failureCount >= this.#options.failuresMax)) {
      this.#openUntil = this.#now() + this.#options.coolDownMs;
    }
  }
}
