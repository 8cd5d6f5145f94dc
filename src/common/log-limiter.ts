// Limits how often an event is logged, so that events which anyone can cause, or which repeat, cannot flood the log.

export class LogLimiter {
  readonly #intervalMs: number;
  readonly #linesMax: number;
  readonly #nowMs: () => number;
  #intervalEndsAtMs = Number.NEGATIVE_INFINITY;
  #lineCount = 0;
  #eventCount = 0;

  /**
   * @param options `linesMax` is the number of lines per interval, 1 by default; `nowMs` returns the milliseconds of a
   * monotonic clock.
   */
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
   * Counts events. Returns how many events the next line should report, including those left out since the last line,
   * or 0 if nothing should be logged now.
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
