// The order in which the start loads collections: collections that requests wait for come first. Loads
// yield to the event loop every few milliseconds.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Concurrent loads that no request waits for, so that files of one are read while another is decoded. */
const LOADS_MAX = 2;
/** Additional concurrent loads for requests, which must not wait for a large collection that no request needs. */
const URGENT_LOADS_MAX = 4;
/** Time between two yields to the event loop. */
const TURN_MS = 5;

interface Load {
  readonly ended: Promise<void>;
  end(): void;
  hasBegun: boolean;
}

export class LoadQueue {
  /** Loads that have not ended, by incarnation, in their order without requests. */
  readonly #loads = new Map<string, Load>();
  /** Loads that have not begun. */
  readonly #waiting = new Set<string>();
  /** Waiting loads that requests wait for, in the order of the requests. */
  readonly #urgent = new Set<string>();
  readonly #load: (incarnation: string) => Promise<void>;
  readonly #stopping: AbortSignal;
  readonly #urgentWork = new Set<Promise<void>>();
  #turnAtMs = 0;

  /** `load` must not reject. No load begins after `stopping`. */
  constructor(
    incarnations: Iterable<string>,
    {
      load,
      stopping,
    }: { readonly load: (incarnation: string) => Promise<void>; readonly stopping: AbortSignal },
  ) {
    this.#load = load;
    this.#stopping = stopping;
    for (const incarnation of incarnations) {
      this.#loads.set(incarnation, createLoad());
      this.#waiting.add(incarnation);
    }
  }

  /** The number of collections that are not loaded yet. */
  get count(): number {
    return this.#loads.size;
  }

  /** Loads all collections. Resolves when all are loaded, or after `stopping` when no load is in progress. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: LOADS_MAX }, () => this.#work(this.#waiting)));
    while (this.#urgentWork.size > 0) await Promise.all(this.#urgentWork);
    for (const load of this.#loads.values()) load.end();
  }

  /**
   * Moves a collection before those that no request waits for. Resolves when it is loaded or no longer will be;
   * undefined for a collection that is loaded or not in the queue.
   */
  whenEnded(incarnation: string): Promise<void> | undefined {
    const load = this.#loads.get(incarnation);
    if (load === undefined) return undefined;
    if (!load.hasBegun && !this.#stopping.aborted) {
      this.#urgent.add(incarnation);
      if (this.#urgentWork.size < URGENT_LOADS_MAX) this.#startUrgentWork();
    }
    return load.ended;
  }

  #startUrgentWork(): void {
    const work: Promise<void> = this.#work(this.#urgent).finally(() => {
      this.#urgentWork.delete(work);
    });
    this.#urgentWork.add(work);
  }

  /** Loads the collections of the set, and urgent collections before them. */
  async #work(set: ReadonlySet<string>): Promise<void> {
    while (!this.#stopping.aborted) {
      const [incarnation] = this.#urgent.size > 0 ? this.#urgent : set;
      if (incarnation === undefined) return;
      const load = this.#loads.get(incarnation)!;
      this.#urgent.delete(incarnation);
      this.#waiting.delete(incarnation);
      load.hasBegun = true;
      await this.#load(incarnation);
      if (this.#stopping.aborted) return;
      this.#loads.delete(incarnation);
      load.end();
      if (performance.now() < this.#turnAtMs) continue;
      await nextTurn();
      this.#turnAtMs = performance.now() + TURN_MS;
    }
  }
}

function createLoad(): Load {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { ended, end, hasBegun: false };
}
