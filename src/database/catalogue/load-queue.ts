// The order in which a start loads collections: those that requests wait for first, then the others. Loads leave
// the event loop to requests every few milliseconds.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** Loads at a time that no request waits for: files of one are read while another one is decoded. */
const LOADS_MAX = 2;
/** Further loads for requests, which do not wait until a large collection is loaded that nobody has asked for. */
const URGENT_LOADS_MAX = 4;
/** Time between two turns of the event loop, in milliseconds. */
const TURN_MS = 5;

interface Load {
  readonly ended: Promise<void>;
  end(): void;
  hasBegun: boolean;
}

export class LoadQueue {
  /** Loads that have not ended, by incarnation, in the order in which they are made unless requests wait for them. */
  readonly #loads = new Map<string, Load>();
  /** Loads that have not begun. */
  readonly #waiting = new Set<string>();
  /** Those of them that requests wait for, in the order of the requests. */
  readonly #urgent = new Set<string>();
  readonly #load: (incarnation: string) => Promise<void>;
  readonly #stopping: AbortSignal;
  readonly #urgentWork = new Set<Promise<void>>();
  #turnAtMs = 0;

  /** `load` never rejects. After `stopping` no load begins. */
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

  /** Collections that are not loaded yet. */
  get count(): number {
    return this.#loads.size;
  }

  /**
   * Begins with the collections that nobody has asked for. Resolves when nothing is left or being loaded, and after
   * `stopping` when nothing is being loaded.
   */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: LOADS_MAX }, () => this.#work(this.#waiting)));
    while (this.#urgentWork.size > 0) await Promise.all(this.#urgentWork);
    for (const load of this.#loads.values()) load.end();
  }

  /**
   * Resolves when the collection is loaded, or no longer will be; undefined for one that this queue does not have, or has
   * loaded. It goes before those that no request waits for.
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

  /** Loads what the set has, and what is urgent before that. */
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
