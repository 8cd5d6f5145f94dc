// Leaves a service alone that keeps failing: after so many failures in a row nothing is sent for a
// while, then one request tries whether it is back. It knows neither requests nor errors; who calls
// it says what became of each.

export interface CircuitBreakerOptions {
  /** Failures in a row after which it opens. */
  readonly failuresMax: number;
  /** Milliseconds that it stays open before it lets one request try. */
  readonly coolDownMs: number;
}

/** The service answered, it failed, or nobody knows because the caller gave up. */
export type Outcome = 'answered' | 'failed' | 'unknown';

export type Admission =
  | { readonly kind: 'refused'; readonly retryAfterMs: number }
  /** To be settled once; later calls do nothing. */
  | { readonly kind: 'admitted'; readonly settle: (outcome: Outcome) => void };

export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  /** Milliseconds of a clock that does not go backwards. */
  readonly #now: () => number;
  #failureCount = 0;
  /** Until then nothing is sent; undefined while it is closed. */
  #openUntil: number | undefined;
  /** The request that tries whether the service is back. */
  #trial: symbol | undefined;

  constructor(options: CircuitBreakerOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  /** Asked before every try. */
  admit(): Admission {
    if (this.#openUntil === undefined) return this.#admitted(undefined);
    const waitMs = this.#openUntil - this.#now();
    if (waitMs > 0) return { kind: 'refused', retryAfterMs: Math.ceil(waitMs) };
    // The trial has begun some time ago and will end soon; this is a guess, not a promise.
    if (this.#trial !== undefined) {
      return { kind: 'refused', retryAfterMs: this.#options.coolDownMs };
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
    if (outcome === 'answered') {
      this.#failureCount = 0;
      this.#openUntil = undefined;
      this.#trial = undefined;
      return;
    }
    if (outcome === 'unknown') return;
    this.#failureCount++;
    const isOpen = this.#openUntil !== undefined;
    // What was sent before it opened and fails only now tells nothing new.
    if (isTrial || (!isOpen && this.#failureCount >= this.#options.failuresMax)) {
      this.#openUntil = this.#now() + this.#options.coolDownMs;
    }
  }
}
