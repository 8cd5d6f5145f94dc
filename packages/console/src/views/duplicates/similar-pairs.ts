// The pairs of similar vectors that a self-join finds, and the groups that they form: two vectors are in
// the same group if a chain of pairs connects them. The pairs are kept, so that groups for a higher threshold
// need no second join.

import type { JoinRow } from '@sagitta/client';

/** Bounds memory to 64 MB. A search that finds more pairs needs a higher threshold. */
const PAIRS_MAX = 4_000_000;

export interface GroupMember {
  readonly id: string;
  /** The highest score with another member. */
  readonly score: number;
}

/** `found`: by the first member, so that the groups of later rows come last. `largest`: by the number of members. */
export type GroupOrder = 'found' | 'largest';

export interface SimilarGroup {
  /** At least two, ordered by insertion. The id of the first identifies the group. */
  readonly members: readonly GroupMember[];
}

export class SimilarPairs {
  /** Ids by number; pairs refer to vectors by number. */
  readonly #ids: string[] = [];
  readonly #numbers = new Map<string, number>();
  /** The row of the join by number; absent until the row has arrived. */
  readonly #rows: number[] = [];
  readonly #removed = new Set<number>();
  #lefts = new Int32Array(1_024);
  #rights = new Int32Array(1_024);
  #scores = new Float64Array(1_024);
  #pairCount = 0;
  #rowCount = 0;

  get pairCount(): number {
    return this.#pairCount;
  }

  /** The number of vectors compared so far. */
  get rowCount(): number {
    return this.#rowCount;
  }

  get isFull(): boolean {
    return this.#pairCount >= PAIRS_MAX;
  }

  /** Rows must be added in the order of the join, which is insertion order. */
  addRow({ id, matches }: JoinRow): void {
    const row = this.#rowCount++;
    if (matches.length === 0) return;
    const left = this.#numberOf(id);
    this.#rows[left] = row;
    for (const match of matches) {
      const right = this.#numberOf(match.id);
      // If the row of the match came earlier, it has already added this pair.
      if (this.#rows[right] === undefined) this.#add(left, right, match.score);
    }
  }

  /** Removes vectors that have been deleted. */
  remove(ids: Iterable<string>): void {
    for (const id of ids) {
      const number = this.#numbers.get(id);
      if (number !== undefined) this.#removed.add(number);
    }
  }

  /** The groups of pairs with at least this score. */
  groups(threshold: number, order: GroupOrder): SimilarGroup[] {
    const parents = Int32Array.from(this.#ids, (_, number) => number);
    const best = new Float64Array(this.#ids.length).fill(Number.NEGATIVE_INFINITY);
    for (let pair = 0; pair < this.#pairCount; pair++) {
      const score = this.#scores[pair]!;
      const [left, right] = [this.#lefts[pair]!, this.#rights[pair]!];
      if (score < threshold || this.#removed.has(left) || this.#removed.has(right)) continue;
      best[left] = Math.max(best[left]!, score);
      best[right] = Math.max(best[right]!, score);
      unite(parents, left, right);
    }
    return this.#collect(parents, best, order);
  }

  #collect(parents: Int32Array, best: Float64Array, order: GroupOrder): SimilarGroup[] {
    const numbersByRoot = new Map<number, number[]>();
    for (let number = 0; number < parents.length; number++) {
      if (best[number] === Number.NEGATIVE_INFINITY) continue;
      const root = rootOf(parents, number);
      const numbers = numbersByRoot.get(root);
      if (numbers === undefined) numbersByRoot.set(root, [number]);
      else numbers.push(number);
    }
    const groups = [...numbersByRoot.values()];
    for (const numbers of groups) numbers.sort((a, b) => this.#rowOf(a) - this.#rowOf(b));
    groups.sort((a, b) => this.#rowOf(a[0]!) - this.#rowOf(b[0]!));
    if (order === 'largest') groups.sort((a, b) => b.length - a.length);
    return groups.map((numbers) => ({
      members: numbers.map((number) => ({ id: this.#ids[number]!, score: best[number]! })),
    }));
  }

  /** Vectors whose rows have not arrived, because the join was stopped, come last. */
  #rowOf(number: number): number {
    return this.#rows[number] ?? this.#rowCount + number;
  }

  #numberOf(id: string): number {
    let number = this.#numbers.get(id);
    if (number === undefined) {
      number = this.#ids.push(id) - 1;
      this.#numbers.set(id, number);
    }
    return number;
  }

  #add(left: number, right: number, score: number): void {
    if (this.#pairCount === this.#lefts.length) this.#grow();
    this.#lefts[this.#pairCount] = left;
    this.#rights[this.#pairCount] = right;
    this.#scores[this.#pairCount] = score;
    this.#pairCount++;
  }

  #grow(): void {
    const { length } = this.#lefts;
    const [lefts, rights, scores] = [this.#lefts, this.#rights, this.#scores];
    this.#lefts = new Int32Array(2 * length);
    this.#rights = new Int32Array(2 * length);
    this.#scores = new Float64Array(2 * length);
    this.#lefts.set(lefts);
    this.#rights.set(rights);
    this.#scores.set(scores);
  }
}

/** Groups are formed again after so many more rows, as a share of those compared, which bounds the work in total. */
const GROUPING_SHARE = 0.05;

/** Says whether the groups should be formed again: there are more pairs, and enough rows have been compared. */
export function groupSchedule(): (pairs: Pick<SimilarPairs, 'rowCount' | 'pairCount'>) => boolean {
  let [rowCountMin, pairCountBefore] = [0, 0];
  return ({ rowCount, pairCount }) => {
    if (rowCount < rowCountMin || pairCount === pairCountBefore) return false;
    rowCountMin = rowCount * (1 + GROUPING_SHARE);
    pairCountBefore = pairCount;
    return true;
  };
}

/** The root of a set in the union-find forest; halves the path on the way. */
function rootOf(parents: Int32Array, start: number): number {
  let number = start;
  while (parents[number] !== number) {
    parents[number] = parents[parents[number]!]!;
    number = parents[number]!;
  }
  return number;
}

function unite(parents: Int32Array, left: number, right: number): void {
  const [a, b] = [rootOf(parents, left), rootOf(parents, right)];
  if (a !== b) parents[Math.max(a, b)] = Math.min(a, b);
}
