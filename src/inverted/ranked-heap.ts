// A heap of the best rows of a search by score descending, then id bytes ascending, with the worst row on top.

import type { RankKey } from '../common/rank-key.js';
import type { Utf8Column } from '../common/types.js';

/** Rows of several views, best first. */
export interface RankedRows {
  /** Indexes into the views that were searched. */
  readonly viewIndexes: Uint32Array;
  readonly rows: Uint32Array;
  readonly scores: Float64Array;
}

export class RankedHeap {
  readonly #k: number;
  readonly #ids: readonly Utf8Column[];
  readonly #scores: number[] = [];
  readonly #views: number[] = [];
  readonly #rows: number[] = [];

  /** @param ids the id column of each view. */
  constructor(k: number, ids: readonly Utf8Column[]) {
    this.#k = k;
    this.#ids = ids;
  }

  /** Rows with a lower score can no longer be among the best. */
  get scoreMin(): number {
    return this.#scores.length < this.#k ? Number.NEGATIVE_INFINITY : this.#scores[0]!;
  }

  offer(score: number, view: number, row: number): void {
    const { length } = this.#scores;
    if (length === this.#k) {
      if (score < this.#scores[0]!) return;
      if (score === this.#scores[0]! && this.#compareIds(view, row, 0) > 0) return;
      this.#set(0, score, view, row);
      this.#sink(0);
      return;
    }
    this.#set(length, score, view, row);
    this.#rise(length);
  }

  ranked(): RankedRows {
    const order = this.#scores.map((_, index) => index);
    order.sort((a, b) => (this.#isWorse(a, b) ? 1 : -1));
    return {
      viewIndexes: Uint32Array.from(order, (index) => this.#views[index]!),
      rows: Uint32Array.from(order, (index) => this.#rows[index]!),
      scores: Float64Array.from(order, (index) => this.#scores[index]!),
    };
  }

  #set(at: number, score: number, view: number, row: number): void {
    this.#scores[at] = score;
    this.#views[at] = view;
    this.#rows[at] = row;
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!this.#isWorse(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(from: number): void {
    const { length } = this.#scores;
    for (let at = from; ; ) {
      const left = 2 * at + 1;
      if (left >= length) return;
      const child = left + 1 < length && this.#isWorse(left + 1, left) ? left + 1 : left;
      if (!this.#isWorse(child, at)) return;
      this.#swap(child, at);
      at = child;
    }
  }

  #isWorse(a: number, b: number): boolean {
    const difference = this.#scores[a]! - this.#scores[b]!;
    return difference === 0
      ? this.#compareIds(this.#views[a]!, this.#rows[a]!, b) > 0
      : difference < 0;
  }

  /** Compares the id of a row with that of a heap entry. */
  #compareIds(view: number, row: number, entry: number): number {
    return Buffer.compare(
      idOf(this.#ids[view]!, row),
      idOf(this.#ids[this.#views[entry]!]!, this.#rows[entry]!),
    );
  }

  #swap(a: number, b: number): void {
    const [score, view, row] = [this.#scores[a]!, this.#views[a]!, this.#rows[a]!];
    this.#set(a, this.#scores[b]!, this.#views[b]!, this.#rows[b]!);
    this.#set(b, score, view, row);
  }
}

/** Whether a row ranks after a rank key. */
export function isAfter(
  { score: lastScore, id }: RankKey,
  score: number,
  ids: Utf8Column,
  row: number,
): boolean {
  return score === lastScore ? Buffer.compare(idOf(ids, row), id) > 0 : score < lastScore;
}

function idOf({ offsets, bytes }: Utf8Column, row: number): Uint8Array {
  return bytes.subarray(offsets[row]!, offsets[row + 1]!);
}
