// Whether the store of a node can take what is committed to the logs. The node announces it, and while it cannot, other
// nodes should own the logs.

import type { Members } from '../members/members.js';

/** How long a node whose store has failed leaves the logs to others. */
const PAUSE_MS = 10_000;
const FAILING_MS = 1_200;
/** A disk that needs longer for a commit counts as one that has failed. */
const STALLED_MS_MIN = 1_500;

export class StoreHealth {
  readonly #members: Members;
  #pausedUntilMs = 0;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #failure: Error | null = null;

  constructor(members: Members) {
    this.#members = members;
  }

  recordFailure(error: Error): void {
    this.#failure = error;
    this.#failedAtMs = performance.now();
    this.#pausedUntilMs = performance.now() + PAUSE_MS;
    this.#announce(false);
  }

  /** Whether the store has just failed. A store that cannot keep up with the logs is tried again every half second. */
  get isFailing(): boolean {
    return performance.now() - this.#failedAtMs < FAILING_MS;
  }

  /** Why the store cannot take what is committed, for operators. */
  get reason(): string {
    return this.#failure === null
      ? 'The data of a collection is damaged on this node, so other nodes carry out the writes. Start it with an empty data directory.'
      : `This node could not store what the logs contain, so other nodes carry out the writes: ${this.#failure.message}`;
  }

  /**
   * Called periodically. `hasDamage`: whether the data of a collection is damaged here. `storingMs`: how long the store has
   * been busy with the commit that it began first.
   */
  update({
    hasDamage,
    storingMs,
  }: {
    readonly hasDamage: boolean;
    readonly storingMs: number;
  }): void {
    if (storingMs > STALLED_MS_MIN) {
      const seconds = Math.round(storingMs / 1_000);
      this.recordFailure(new Error(`the disk has not answered for ${seconds} s`));
    }
    const isPaused = performance.now() < this.#pausedUntilMs;
    if (!isPaused) this.#failure = null;
    this.#announce(!isPaused && !hasDamage);
  }

  #announce(canStore: boolean): void {
    if (canStore !== this.#members.self.canStore) this.#members.change({ canStore });
  }
}
