// Groups ranked matches by their values: the first matches of each of the first groups. It takes matches
// from any source in order of rank, tells which values still matter, and knows when the groups are
// proven complete. Where the matches come from is left to the caller.

import type { FacetValue } from '../api/aggregate-api.js';

export interface GroupingRequest {
  readonly path: string;
  /** The most matches of a group. */
  readonly size: number;
}

export interface Group<Match> {
  readonly value: FacetValue;
  /** Best first. */
  readonly matches: readonly Match[];
}

/** The rows that can still change the groups have one of the values, or a value beside them. */
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
  /** In the order of their best matches. */
  readonly #groups = new Map<FacetValue, OpenGroup<Match>>();
  #fullCount = 0;

  /**
   * The groups from the place `start` to before `end` are returned. With `mayHaveMore` it also finds out whether there
   * is a further one.
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

  /** Takes the next match in order of rank, with its distinct values in the order of values. */
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
   * The most matches that the groups can still take. So many wanted matches in order of rank fill at
   * least one further group, if they do not complete all.
   */
  get remainingCount(): number {
    let count = 0;
    for (const { matches, capacity } of this.#groups.values()) count += capacity - matches.length;
    for (let at = this.#groups.size; at < this.#foundMax; at++) count += this.#capacityAt(at);
    return count;
  }

  /** Once all groups are known, only those that are not full matter; before, all but the full ones. */
  get wanted(): WantedValues {
    const isKnown = this.#groups.size === this.#foundMax;
    const values: FacetValue[] = [];
    for (const [value, { matches, capacity }] of this.#groups) {
      if ((matches.length === capacity) !== isKnown) values.push(value);
    }
    return { kind: isKnown ? 'among' : 'beside', values };
  }

  /** Those after the skipped ones. */
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
