// Whether the main thread keeps up: how late a timer comes while requests are under way. Nothing is
// measured, and no timer runs, while nobody asks for anything.

import { SagittaError } from '../../common/errors.js';

/** Between two looks: often enough to see a delay of a fraction of a second, and no work itself. */
const INTERVAL_MS = 50;

/** A delay ends with the turn of the event loop that caused it, or is worth waiting out. */
const RETRY_AFTER_SECONDS = 1;

export interface EventLoopMonitorOptions {
  readonly delayMsMax: number;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
}

export class EventLoopMonitor {
  readonly #delayMsMax: number;
  readonly #nowMs: () => number;
  #underWayCount = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer should come. */
  #dueAtMs = 0;
  /** By how much it came late the last time. */
  #lastDelayMs = 0;

  constructor({ delayMsMax, nowMs }: EventLoopMonitorOptions) {
    this.#delayMsMax = delayMsMax;
    this.#nowMs = nowMs;
  }

  /** A request is under way; `end` follows. */
  begin(): void {
    this.#underWayCount++;
    if (this.#timer === undefined) this.#arm();
  }

  end(): void {
    this.#underWayCount--;
  }

  /** Of the event loop, for metrics too; 0 while nothing is under way. */
  get delayMs(): number {
    if (this.#timer === undefined) return 0;
    // Within one long turn the timer cannot tell, but what it would say is known already.
    return Math.max(this.#lastDelayMs, this.#nowMs() - this.#dueAtMs);
  }

  /** Throws `overloaded` while the delay is above the bound. */
  check(): void {
    const { delayMs } = this;
    if (delayMs <= this.#delayMsMax) return;
    throw new SagittaError(
      'overloaded',
      `The service is ${Math.round(delayMs)} ms behind with its work; from ${this.#delayMsMax} ms on it takes no more.`,
      { retryAfterSeconds: RETRY_AFTER_SECONDS },
    );
  }

  #arm(): void {
    this.#dueAtMs = this.#nowMs() + INTERVAL_MS;
    this.#timer = setTimeout(() => this.#look(), INTERVAL_MS).unref();
  }

  #look(): void {
    this.#lastDelayMs = Math.max(0, this.#nowMs() - this.#dueAtMs);
    this.#timer = undefined;
    // One more look after the last request, and not a timer for each of many short ones.
    if (this.#underWayCount > 0) this.#arm();
    else this.#lastDelayMs = 0;
  }
}
