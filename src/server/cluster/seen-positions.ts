// Up to where clients of this node have seen the logs of collections that other nodes hold. The next request about such a
// collection takes it along, so that another node answers with at least that.

import type { LogPositions } from '../wire/consistency.js';

/** The later one of each log. */
export function laterOf(...all: readonly LogPositions[]): LogPositions {
  const later: Record<string, number> = {};
  for (const positions of all) {
    for (const [log, position] of Object.entries(positions)) {
      later[log] = Math.max(position, later[log] ?? 0);
    }
  }
  return later;
}

/** So many are kept before it is looked which of them are still needed. */
const KEPT_MIN = 1_000;

export class SeenPositions {
  readonly #holds: (incarnation: string) => boolean;
  readonly #byIncarnation = new Map<string, number>();
  #keptMax = KEPT_MIN;

  /** `holds`: whether this node waits for a log itself. Also true of a collection that is deleted. */
  constructor(holds: (incarnation: string) => boolean) {
    this.#holds = holds;
  }

  /** How many collections are remembered: at most twice as many as other nodes alone hold, and 1 000. */
  get count(): number {
    return this.#byIncarnation.size;
  }

  /** `position`: 0 where a reply names none. */
  note(incarnation: string, position: number): void {
    const known = this.#byIncarnation.get(incarnation) ?? 0;
    this.#byIncarnation.set(incarnation, Math.max(position, known));
    if (this.#byIncarnation.size > this.#keptMax) this.#forget();
  }

  /** Those that are known, by incarnation. */
  of(incarnations: readonly string[]): LogPositions {
    const known = incarnations.filter((incarnation) => this.#byIncarnation.has(incarnation));
    return Object.fromEntries(known.map((each) => [each, this.#byIncarnation.get(each)!]));
  }

  /** Those that no request needs any more. It is done again when they are twice as many: each note costs little. */
  #forget(): void {
    for (const incarnation of this.#byIncarnation.keys()) {
      if (this.#holds(incarnation)) this.#byIncarnation.delete(incarnation);
    }
    this.#keptMax = Math.max(KEPT_MIN, 2 * this.#byIncarnation.size);
  }
}
