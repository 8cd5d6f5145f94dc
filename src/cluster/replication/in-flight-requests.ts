// Counts the writes under way, or the reads, by the log that they are for, so that a log can be handed over between
// them.

import { endsWithin } from '../../common/ends-within.js';

export class InFlightRequests {
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Returns the function that ends the write, which may be called more than once. */
  begin(log: string): () => void {
    this.#counts.set(log, (this.#counts.get(log) ?? 0) + 1);
    let isUnderWay = true;
    return () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      const count = this.#counts.get(log)! - 1;
      if (count > 0) {
        this.#counts.set(log, count);
        return;
      }
      this.#counts.delete(log);
      for (const resolve of this.#waiting.get(log) ?? []) resolve();
    };
  }

  /** Resolves with true when no write to any of the logs is under way, and with false when there still is one after a time. */
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
