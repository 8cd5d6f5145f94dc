// Waits until a growing number reaches a value.

import { whenAborted } from './when-aborted.js';

export class Milestones {
  readonly #waiters = new Set<{ readonly value: number; readonly resolve: () => void }>();
  #reached: number;

  constructor(reached: number) {
    this.#reached = reached;
  }

  /** Whether anything waits. */
  get isAwaited(): boolean {
    return this.#waiters.size > 0;
  }

  /** Resolves when the value is reached; rejects with the reason of the signal. */
  async wait(value: number, signal: AbortSignal | undefined): Promise<void> {
    if (value <= this.#reached) return;
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const waiter = {
        value,
        resolve: () => {
          ignoreAbort();
          resolve();
        },
      };
      const ignoreAbort = whenAborted(signal, () => {
        this.#waiters.delete(waiter);
        reject(signal?.reason);
      });
      this.#waiters.add(waiter);
    });
  }

  reach(value: number): void {
    this.#reached = value;
    for (const waiter of this.#waiters) {
      if (waiter.value > value) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
