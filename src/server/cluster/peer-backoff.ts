// Remembers the nodes that failed to answer, so that others are asked for a while.

/** How long a node that failed to answer is avoided. */
const BACKOFF_MS = 5_000;

export class PeerBackoff {
  /** The end of each backoff by instance, on the clock of `performance.now`. */
  readonly #untilMs = new Map<string, number>();

  isActive(instance: string): boolean {
    return (this.#untilMs.get(instance) ?? 0) > performance.now();
  }

  start(instance: string): void {
    const nowMs = performance.now();
    for (const [other, untilMs] of this.#untilMs) {
      if (untilMs <= nowMs) this.#untilMs.delete(other);
    }
    this.#untilMs.set(instance, nowMs + BACKOFF_MS);
  }

  clear(instance: string): void {
    this.#untilMs.delete(instance);
  }
}
