// The order of answers: score descending, then id bytes ascending. Contains the bounded selection of the best
// rows in that order, and the rules for rank keys and score limits. canonical.ts defines scores.

import type { RankKey } from '../../common/rank-key.js';
import { isDistance, type Metric, type Utf8Column } from '../../common/types.js';
import { publicScore } from './engine.js';

/** Limits on the rows that may be in the answer to a query. */
interface Eligibility {
  /** The least score; see `scoreFloor`. */
  readonly floor: number;
  /** Only rows strictly after this rank key. */
  readonly after: RankKey | null;
}

/** Negative when the id of `left` comes first, 0 when both are the same bytes. */
export function compareIds(ids: Utf8Column, left: number, right: number): number {
  const { offsets, bytes } = ids;
  const leftStart = offsets[left]!;
  const rightStart = offsets[right]!;
  const leftLength = offsets[left + 1]! - leftStart;
  const rightLength = offsets[right + 1]! - rightStart;
  const shared = leftLength < rightLength ? leftLength : rightLength;
  for (let i = 0; i < shared; i++) {
    const difference = bytes[leftStart + i]! - bytes[rightStart + i]!;
    if (difference !== 0) return difference;
  }
  return leftLength - rightLength;
}

/** Negative when the id of `row` comes before `id`, 0 when both are the same bytes. */
export function compareIdWith(ids: Utf8Column, row: number, id: Uint8Array): number {
  const { offsets, bytes } = ids;
  const start = offsets[row]!;
  const length = offsets[row + 1]! - start;
  const shared = length < id.length ? length : id.length;
  for (let i = 0; i < shared; i++) {
    const difference = bytes[start + i]! - id[i]!;
    if (difference !== 0) return difference;
  }
  return length - id.length;
}

/**
 * The least score s with fround(publicScore(metric, s)) >= scoreMin: a row passes iff its score is at
 * least s. −Infinity when every score passes, +Infinity when none does. The public score is a sequence
 * of correctly rounded monotone steps, so bisection over the float64 values finds s.
 */
export function scoreFloor(metric: Metric, scoreMin: number | null): number {
  if (scoreMin === null) return Number.NEGATIVE_INFINITY;
  if (lastFloor.metric !== metric || lastFloor.scoreMin !== scoreMin) {
    lastFloor = { metric, scoreMin, floor: findFloor(metric, scoreMin) };
  }
  return lastFloor.floor;
}

/** The queries of a join have the same limit, and finding it takes some microseconds. */
let lastFloor: { readonly metric: Metric; readonly scoreMin: number; readonly floor: number } = {
  metric: 'cosine',
  scoreMin: Number.NEGATIVE_INFINITY,
  floor: Number.NEGATIVE_INFINITY,
};

function findFloor(metric: Metric, scoreMin: number): number {
  const passes = (score: number) => Math.fround(publicScore(metric, score)) >= scoreMin;
  const highest = isDistance(metric) ? 0 : Number.MAX_VALUE;
  if (!passes(highest)) return Number.POSITIVE_INFINITY;
  if (passes(-Number.MAX_VALUE)) return Number.NEGATIVE_INFINITY;
  let failing = orderKey(-Number.MAX_VALUE);
  let passing = orderKey(highest);
  while (passing - failing > 1n) {
    const middle = (passing + failing) >> 1n;
    if (passes(fromOrderKey(middle))) passing = middle;
    else failing = middle;
  }
  return fromOrderKey(passing);
}

/** One value as a number and as its bits. */
const asNumber = new Float64Array(1);
const asBits = new BigInt64Array(asNumber.buffer);

/** Maps float64 values to integers of the same order; both zeros are 0. */
function orderKey(value: number): bigint {
  asNumber[0] = Math.abs(value);
  return value < 0 ? -asBits[0]! : asBits[0]!;
}

function fromOrderKey(key: bigint): number {
  asBits[0] = key < 0n ? -key : key;
  return key < 0n ? -asNumber[0]! : asNumber[0]!;
}

/** The best k of the eligible rows offered: a heap with the worst row on top. */
export class TopRows {
  readonly floor: number;
  readonly #ids: Utf8Column;
  readonly #after: RankKey | null;
  readonly #capacity: number;
  readonly #scores: Float64Array;
  readonly #rows: Uint32Array;
  #count = 0;

  /** `rowCount` is the maximum number of rows that will be offered; it bounds the memory when k is larger. */
  constructor(k: number, rowCount: number, ids: Utf8Column, eligibility: Eligibility) {
    this.#ids = ids;
    this.floor = eligibility.floor;
    this.#after = eligibility.after;
    this.#capacity = Math.min(k, rowCount);
    this.#scores = new Float64Array(this.#capacity);
    this.#rows = new Uint32Array(this.#capacity);
  }

  /** Rows with a lower score are rejected. */
  get cutoff(): number {
    if (this.#count < this.#capacity || this.#capacity === 0) return this.floor;
    return this.#scores[0]!;
  }

  /** Offers a row. Each row must be offered at most once. */
  offer(score: number, row: number): void {
    if (score < this.floor || (this.#after !== null && !this.#isAfter(this.#after, score, row)))
      return;
    if (this.#count < this.#capacity) {
      this.#count++;
      this.#siftUp(this.#count - 1, score, row);
    } else if (this.#capacity > 0 && this.#isWorse(this.#scores[0]!, this.#rows[0]!, score, row)) {
      this.#siftDown(this.#count, score, row);
    }
  }

  /** Removes all rows and returns them, best first. The caller owns the arrays. */
  take(): { rows: Uint32Array; scores: Float64Array } {
    const count = this.#count;
    const rows = new Uint32Array(count);
    const scores = new Float64Array(count);
    for (let place = count - 1; place >= 0; place--) {
      rows[place] = this.#rows[0]!;
      scores[place] = this.#scores[0]!;
      this.#siftDown(place, this.#scores[place]!, this.#rows[place]!);
    }
    this.#count = 0;
    return { rows, scores };
  }

  #isAfter(rankKey: RankKey, score: number, row: number): boolean {
    if (score !== rankKey.score) return score < rankKey.score;
    return compareIdWith(this.#ids, row, rankKey.id) > 0;
  }

  /** A total order: rows with equal ids, which only versions of one vector have, are ordered by row. */
  #isWorse(score: number, row: number, otherScore: number, otherRow: number): boolean {
    if (score !== otherScore) return score < otherScore;
    const order = compareIds(this.#ids, row, otherRow);
    return order > 0 || (order === 0 && row > otherRow);
  }

  #siftUp(from: number, score: number, row: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#isWorse(score, row, this.#scores[parent]!, this.#rows[parent]!)) break;
      this.#scores[place] = this.#scores[parent]!;
      this.#rows[place] = this.#rows[parent]!;
      place = parent;
    }
    this.#scores[place] = score;
    this.#rows[place] = row;
  }

  /** Replaces the top of a heap of `count` rows. */
  #siftDown(count: number, score: number, row: number): void {
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= count) break;
      const sibling = child + 1;
      if (
        sibling < count &&
        this.#isWorse(
          this.#scores[sibling]!,
          this.#rows[sibling]!,
          this.#scores[child]!,
          this.#rows[child]!,
        )
      ) {
        child = sibling;
      }
      if (!this.#isWorse(this.#scores[child]!, this.#rows[child]!, score, row)) break;
      this.#scores[place] = this.#scores[child]!;
      this.#rows[place] = this.#rows[child]!;
      place = child;
    }
    this.#scores[place] = score;
    this.#rows[place] = row;
  }
}
