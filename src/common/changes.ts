// Lets code wait for a condition that other code changes, without polling.

import { unlessAborted } from './when-aborted.js';

export class Changes {
  /** Resolves with the next change. */
  #next = withResolver();

  /** Lets everything that waits look again. */
  notify(): void {
    const { resolve } = this.#next;
    this.#next = withResolver();
    resolve();
  }

  /**
   * Resolves with what `find` returns once that is not null; it is called now and after each change. Rejects with what
   * `find` throws and, while it returns null, with the reason of the signal.
   */
  async until<Value>(find: () => Value | null, signal?: AbortSignal): Promise<Value> {
    for (;;) {
      const found = find();
      if (found !== null) return found;
      signal?.throwIfAborted();
      await unlessAborted(this.#next.promise, signal);
    }
  }
}

function withResolver(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
