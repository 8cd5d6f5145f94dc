// How much the audit log tells of strangers: whoever shows no credential, or a wrong one, can make
// as many requests as it likes, and shall neither fill the disk nor bury the lines of others.

/** Enough to see that somebody tries, and at what. */
const LINES_MAX = 10;
const INTERVAL_MS = 10_000;

export class AuditLogLimiter {
  readonly #nowMs: () => number;
  #intervalEndsAtMs = Number.NEGATIVE_INFINITY;
  #lineCount = 0;
  #unlogged = 0;

  /** `nowMs`: milliseconds of a clock that never goes back. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** How many were not told of since the last line; null when this one is not to be told of either. */
  next(): number | null {
    const nowMs = this.#nowMs();
    if (nowMs >= this.#intervalEndsAtMs) {
      this.#intervalEndsAtMs = nowMs + INTERVAL_MS;
      this.#lineCount = 0;
    }
    if (this.#lineCount >= LINES_MAX) {
      this.#unlogged++;
      return null;
    }
    this.#lineCount++;
    const unlogged = this.#unlogged;
    this.#unlogged = 0;
    return unlogged;
  }
}
