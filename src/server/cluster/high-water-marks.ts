// The highest log positions that clients of this node have seen of collections held by other nodes, or that this node was
// late to apply. A request about such a collection is forwarded with its position, and replies refer to it, so that no later
// reply shows an older state.

import type { LogPositions } from '../wire/consistency.js';

/** The maximum of each log. */
export function laterOf(...all: readonly LogPositions[]): LogPositions {
  const later: Record<string, number> = {};
  for (const positions of all) {
    for (const [log, position] of Object.entries(positions)) {
      later[log] = Math.max(position, later[log] ?? 0);
    }
  }
  return later;
}

/** With fewer marks, none is checked for being obsolete. */
const KEPT_MIN = 1_000;

export class HighWaterMarks {
  readonly #holds: (incarnation: string) => boolean;
  readonly #byIncarnation = new Map<string, number>();
  #keptMax = KEPT_MIN;

  /** `holds`: whether this node applies the log itself, or the collection is deleted; the mark is obsolete then. */
  constructor(holds: (incarnation: string) => boolean) {
    this.#holds = holds;
  }

  /** At most 1 000, or twice the number of collections that only other nodes hold. */
  get count(): number {
    return this.#byIncarnation.size;
  }

  /** Raises the mark of a collection to a position, if that is higher. */
  raise(incarnation: string, position: number): void {
    const known = this.#byIncarnation.get(incarnation) ?? 0;
    this.#byIncarnation.set(incarnation, Math.max(position, known));
    if (this.#byIncarnation.size > this.#keptMax) this.#dropObsolete();
  }

  /** The known marks of these collections. */
  of(incarnations: readonly string[]): LogPositions {
    const known = incarnations.filter((incarnation) => this.#byIncarnation.has(incarnation));
    return Object.fromEntries(known.map((each) => [each, this.#byIncarnation.get(each)!]));
  }

  /** The next run waits until the number of marks has doubled, so that the cost of each mark is constant. */
  #dropObsolete(): void {
    for (const incarnation of this.#byIncarnation.keys()) {
      if (this.#holds(incarnation)) this.#byIncarnation.delete(incarnation);
    }
    this.#keptMax = Math.max(KEPT_MIN, 2 * this.#byIncarnation.size);
  }
}
