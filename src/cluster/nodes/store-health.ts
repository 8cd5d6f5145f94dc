// Whether the store of a node can take what is committed to the logs. The node announces it, and while it cannot, other
// nodes should own the logs.

import type { Members } from '../members/members.js';

/** How long a node whose store has failed leaves the logs to others. */
const PAUSE_MS = 10_000;

export class StoreHealth {
  readonly #members: Members;
  #pausedUntilMs = 0;

  constructor(members: Members) {
    this.#members = members;
  }

  recordFailure(): void {
    this.#pausedUntilMs = performance.now() + PAUSE_MS;
    this.#announce(false);
  }

  /** Called periodically. `hasDamage`: whether the data of a collection is damaged here. */
  update(hasDamage: boolean): void {
    this.#announce(performance.now() >= this.#pausedUntilMs && !hasDamage);
  }

  #announce(canStore: boolean): void {
    if (canStore !== this.#members.self.canStore) this.#members.change({ canStore });
  }
}
