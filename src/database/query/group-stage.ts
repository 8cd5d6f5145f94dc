// Collects the first groups of ranked matches, with the first matches of each. It accepts matches in order of rank,
// tells which values can still change the groups, and knows when the groups are complete. The caller finds the matches.

import type { FacetValue } from '../api/aggregate-api.js';

export interface GroupingRequest {
  readonly path: string;
  /** Matches per group, at most. */
  readonly size: number;
}

export interface Group<Match> {
  readonly value: FacetValue;
  /** Best first. */
  readonly matches: readonly Match[];
}

/** The rows that can still change the groups: those with one of the values, or with any other value. */
export interface WantedValues {
  readonly kind: 'among' | 'beside';
  readonly values: readonly FacetValue[];
}

interface OpenGroup<Match> {
  readonly matches: Match[];
  readonly capacity: number;
}

export class GroupStage<Match> {
  readonly #size: number;
  readonly #start: number;
  readonly #end: number;
  readonly #foundMax: number;
  /** Groups in the order of their best matches. */
  readonly #groups = new Map<FacetValue, OpenGroup<Match>>();
  #fullCount = 0;

  /**
   * Returns the groups from index `start` to before `end`. With `mayHaveMore` it also finds out whether another group
   * follows.
   */
  constructor(options: {
    readonly size: number;
    readonly start: number;
    readonly end: number;
    readonly mayHaveMore: boolean;
  }) {
    this.#size = options.size;
    this.#start = options.start;
    this.#end = options.end;
    this.#foundMax = options.end + (options.mayHaveMore ? 1 : 0);
  }

  /** Accepts the next match in order of rank, with its distinct values in their order. */
  accept(match: Match, values: readonly FacetValue[]): void {
    for (const value of values) {
      let group = this.#groups.get(value);
      if (group === undefined) {
        if (this.#groups.size === this.#foundMax) continue;
        group = { matches: [], capacity: this.#capacityAt(this.#groups.size) };
        this.#groups.set(value, group);
      }
      if (group.matches.length === group.capacity) continue;
      group.matches.push(match);
      if (group.matches.length === group.capacity) this.#fullCount++;
    }
  }

  get isComplete(): boolean {
    return this.#fullCount === this.#foundMax;
  }

  /**
   * The number of matches that the groups can still take. This many wanted matches in order of rank complete all groups
   * or fill at least one more.
   */
  get remainingCount(): number {
    let count = 0;
    for (const { matches, capacity } of this.#groups.values()) count += capacity - matches.length;
    for (let at = this.#groups.size; at < this.#foundMax; at++) count += this.#capacityAt(at);
    return count;
  }

  /**
   * Once all groups are known, only groups that are not full matter; before that, all values except those of full
   * groups.
   */
  get wanted(): WantedValues {
    const isKnown = this.#groups.size === this.#foundMax;
    const values: FacetValue[] = [];
    for (const [value, { matches, capacity }] of this.#groups) {
      if ((matches.length === capacity) !== isKnown) values.push(value);
    }
    return { kind: isKnown ? 'among' : 'beside', values };
  }

  groups(): readonly Group<Match>[] {
    return [...this.#groups]
      .slice(this.#start, this.#end)
      .map(([value, { matches }]) => ({ value, matches }));
  }

  get hasMore(): boolean {
    return this.#groups.size > this.#end;
  }

  /** Groups that are not returned only need to be found. */
  #capacityAt(at: number): number {
    return at >= this.#start && at < this.#end ? this.#size : 1;
  }
}
