// What orders results: the score, descending, then the bytes of the id, ascending. Also counts the rows that come before
// each of several keys.

import type { Utf8Column } from './types.js';

/** A point in the order of results, which need not be that of a row. */
export interface RankKey {
  readonly score: number;
  readonly id: Uint8Array;
}

/** Keys in their order, best first. */
export interface SortedRankKeys {
  readonly scores: Float64Array;
  readonly ids: Utf8Column;
}

/** Below 0 where the left key comes first. */
export function compareRankKeys(left: RankKey, right: RankKey): number {
  return left.score === right.score ? Buffer.compare(left.id, right.id) : right.score - left.score;
}

/** `origins` are the indexes at which the sorted keys were given. */
export function sortRankKeys(rankKeys: readonly RankKey[]): {
  readonly sorted: SortedRankKeys;
  readonly origins: readonly number[];
} {
  const origins = [...rankKeys.keys()].sort((a, b) => compareRankKeys(rankKeys[a]!, rankKeys[b]!));
  const inOrder = origins.map((origin) => rankKeys[origin]!);
  const offsets = new Int32Array(inOrder.length + 1);
  for (const [i, { id }] of inOrder.entries()) offsets[i + 1] = offsets[i]! + id.length;
  const bytes = new Uint8Array(offsets[inOrder.length]!);
  for (const [i, { id }] of inOrder.entries()) bytes.set(id, offsets[i]!);
  const scores = Float64Array.from(inOrder, ({ score }) => score);
  return { sorted: { scores, ids: { offsets, bytes } }, origins };
}

/** n keys divide the rows into n + 1 buckets; bucket i ends at key i. Returns the bucket of a row. */
export function bucketOf(
  { scores, ids: keyIds }: SortedRankKeys,
  score: number,
  ids: Utf8Column,
  row: number,
): number {
  let from = 0;
  let to = scores.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const isBefore =
      score === scores[middle]!
        ? Buffer.compare(idAt(ids, row), idAt(keyIds, middle)) < 0
        : score > scores[middle]!;
    if (isBefore) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The number of rows before each key, in the order in which the keys were given. */
export function countsBefore(
  countsByBucket: Float64Array,
  origins: readonly number[],
): Float64Array {
  const counts = new Float64Array(origins.length);
  let sum = 0;
  for (const [bucket, origin] of origins.entries()) {
    sum += countsByBucket[bucket]!;
    counts[origin] = sum;
  }
  return counts;
}

function idAt({ offsets, bytes }: Utf8Column, index: number): Uint8Array {
  return bytes.subarray(offsets[index]!, offsets[index + 1]!);
}
