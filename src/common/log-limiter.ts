// Limits how often something is logged: what anybody can cause, or happens again and again, must not flood the log.

export class LogLimiter {
  readonly #intervalMs: number;
  readonly #linesMax: number;
  readonly #nowMs: () => number;
  #intervalEndsAtMs = Number.NEGATIVE_INFINITY;
  #lineCount = 0;
  #eventCount = 0;

  /** @param options `linesMax` in an interval, 1 by default; `nowMs`: milliseconds of a monotonic clock. */
  constructor({
    intervalMs,
    linesMax = 1,
    nowMs = () => performance.now(),
  }: {
    readonly intervalMs: number;
    readonly linesMax?: number;
    readonly nowMs?: () => number;
  }) {
    this.#intervalMs = intervalMs;
    this.#linesMax = linesMax;
    this.#nowMs = nowMs;
  }

  /**
   * For so many events: how many a line is about, with those that were left out since the last one; 0 if these are left
   * out too.
   */
  next(count = 1): number {
    this.#eventCount += count;
    const nowMs = this.#nowMs();
    if (nowMs >= this.#intervalEndsAtMs) {
      this.#intervalEndsAtMs = nowMs + this.#intervalMs;
      this.#lineCount = 0;
    }
    if (this.#lineCount >= this.#linesMax) return 0;
    this.#lineCount++;
    const eventCount = this.#eventCount;
    this.#eventCount = 0;
    return eventCount;
  }
}
