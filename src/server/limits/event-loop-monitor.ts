// Measures the delay of the event loop as the lateness of a timer while requests are in progress. An idle service
// runs no timer.

/** Short enough to see a delay of a fraction of a second, and long enough to cost nothing. */
const INTERVAL_MS = 50;

/** The part of the monitor that the pipeline uses. Tests inject a fixed delay. */
export interface EventLoopDelay {
  /** A request has begun; `end` follows. */
  begin(): void;
  end(): void;
  /** Milliseconds; 0 while no request is in progress. */
  readonly delayMs: number;
}

interface EventLoopMonitorOptions {
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
  /** Calls back after `delayMs` without keeping the process alive. */
  readonly setTimer?: (callback: () => void, delayMs: number) => void;
}

export class EventLoopMonitor implements EventLoopDelay {
  readonly #nowMs: () => number;
  readonly #setTimer: (callback: () => void, delayMs: number) => void;
  #inFlightCount = 0;
  #isTimerSet = false;
  /** When the timer should fire. */
  #dueAtMs = 0;
  /** How late the timer fired last. */
  #lastDelayMs = 0;

  constructor({
    nowMs,
    setTimer = (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  }: EventLoopMonitorOptions) {
    this.#nowMs = nowMs;
    this.#setTimer = setTimer;
  }

  begin(): void {
    this.#inFlightCount++;
    if (!this.#isTimerSet) this.#startTimer();
  }

  end(): void {
    this.#inFlightCount--;
  }

  get delayMs(): number {
    if (!this.#isTimerSet) return 0;
    // While a task blocks the event loop, the timer cannot fire but is overdue.
    return Math.max(this.#lastDelayMs, this.#nowMs() - this.#dueAtMs);
  }

  #startTimer(): void {
    this.#dueAtMs = this.#nowMs() + INTERVAL_MS;
    this.#isTimerSet = true;
    this.#setTimer(() => this.#measure(), INTERVAL_MS);
  }

  #measure(): void {
    this.#lastDelayMs = Math.max(0, this.#nowMs() - this.#dueAtMs);
    this.#isTimerSet = false;
    // The timer outlives the last request by one interval, so that many short requests share it.
    if (this.#inFlightCount > 0) this.#startTimer();
    else this.#lastDelayMs = 0;
  }
}
