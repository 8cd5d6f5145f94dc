// Long work on the event loop in short turns, between which requests and signals are handled.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Short enough for health checks and signals, and long enough that yielding costs nothing. */
const TURN_MS = 20;

export class Turns {
  readonly #signal: AbortSignal | undefined;
  #endMs = performance.now() + TURN_MS;

  /** The work ends when `signal` is aborted. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * Called between two small steps of the work. Undefined if the turn has not ended; otherwise resolves in the next
   * one, or rejects with the reason of the signal.
   */
  next(): Promise<void> | undefined {
    return performance.now() < this.#endMs ? undefined : this.#begin();
  }

  async #begin(): Promise<void> {
    await nextTurn();
    this.#signal?.throwIfAborted();
    this.#endMs = performance.now() + TURN_MS;
  }
}
