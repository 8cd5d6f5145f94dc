// Positions in the order (score descending, id bytes ascending), and the places of rows among them: for
// counts of the rows that come before each position.

import type { Utf8Column } from './types.js';

/** A position need not be that of a row. */
export interface RowPosition {
  readonly score: number;
  readonly id: Uint8Array;
}

/** Positions in their order, best first. */
export interface SortedPositions {
  readonly scores: Float64Array;
  readonly ids: Utf8Column;
}

/** Below 0 where the left one comes first. */
export function comparePositions(left: RowPosition, right: RowPosition): number {
  return left.score === right.score ? Buffer.compare(left.id, right.id) : right.score - left.score;
}

/** With the index that each of them was given at. */
export function sortPositions(positions: readonly RowPosition[]): {
  readonly sorted: SortedPositions;
  readonly origins: readonly number[];
} {
  const origins = [...positions.keys()].sort((a, b) =>
    comparePositions(positions[a]!, positions[b]!),
  );
  const inOrder = origins.map((origin) => positions[origin]!);
  const offsets = new Int32Array(inOrder.length + 1);
  for (const [i, { id }] of inOrder.entries()) offsets[i + 1] = offsets[i]! + id.length;
  const bytes = new Uint8Array(offsets[inOrder.length]!);
  for (const [i, { id }] of inOrder.entries()) bytes.set(id, offsets[i]!);
  const scores = Float64Array.from(inOrder, ({ score }) => score);
  return { sorted: { scores, ids: { offsets, bytes } }, origins };
}

/** The place 0..n of a row among n positions: that of the first position that it comes before. */
export function placeOf(
  { scores, ids: positionIds }: SortedPositions,
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
        ? Buffer.compare(idAt(ids, row), idAt(positionIds, middle)) < 0
        : score > scores[middle]!;
    if (isBefore) to = middle;
    else from = middle + 1;
  }
  return from;
}

/**
 * The number of rows before each position, as they were given. A row at a place comes before the position at
 * this place and at all later ones.
 */
export function countsBefore(
  countsByPlace: Float64Array,
  origins: readonly number[],
): Float64Array {
  const counts = new Float64Array(origins.length);
  let sum = 0;
  for (const [place, origin] of origins.entries()) {
    sum += countsByPlace[place]!;
    counts[origin] = sum;
  }
  return counts;
}

function idAt({ offsets, bytes }: Utf8Column, index: number): Uint8Array {
  return bytes.subarray(offsets[index]!, offsets[index + 1]!);
}
