// Counts the writes, or the reads, in flight by log, so that a log can be released or dropped between them.

import { endsWithin } from '../../common/ends-within.js';

export class InFlightRequests {
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Returns the function that ends the request, which may be called more than once. */
  begin(log: string): () => void {
    this.#counts.set(log, (this.#counts.get(log) ?? 0) + 1);
    let isInFlight = true;
    return () => {
      if (!isInFlight) return;
      isInFlight = false;
      const count = this.#counts.get(log)! - 1;
      if (count > 0) {
        this.#counts.set(log, count);
        return;
      }
      this.#counts.delete(log);
      for (const resolve of this.#waiting.get(log) ?? []) resolve();
    };
  }

  /** Resolves with true once no request for any of the logs is in flight, and with false after `msMax`. */
  async whenNone(logs: readonly string[], msMax: number): Promise<boolean> {
    const deadlineMs = performance.now() + msMax;
    for (;;) {
      const busy = logs.find((log) => this.#counts.has(log));
      if (busy === undefined) return true;
      const remainingMs = deadlineMs - performance.now();
      if (remainingMs <= 0) return false;
      await this.#whenNoneOf(busy, remainingMs);
    }
  }

  async #whenNoneOf(log: string, msMax: number): Promise<void> {
    const waiting = this.#waiting.get(log) ?? new Set();
    this.#waiting.set(log, waiting);
    let onNone!: () => void;
    const ended = new Promise<void>((resolve) => {
      onNone = resolve;
    });
    waiting.add(onNone);
    await endsWithin(ended, msMax);
    waiting.delete(onNone);
    if (waiting.size === 0) this.#waiting.delete(log);
  }
}
