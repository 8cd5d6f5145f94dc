// An inverted index of one sparse vector of consecutive rows of a segment: for every index the rows that
// have it, with their values. Parts are immutable and in shared memory; merging neighbouring parts gives
// the same part as building it from all of their rows.

import { sharedFloat32, sharedUint32 } from '../common/shared-array.js';
import type { SparseColumn } from '../common/vectors.js';
import {
  joinPostings,
  type PostingLists,
  type Postings,
  type RowRange,
  sortPostings,
} from './posting-lists.js';

/** Its lists are those of the indices, in their order. */
export interface SparsePart extends PostingLists {
  /** Ascending. */
  readonly indices: Uint32Array;
  /** Of each posting: finite, not 0. */
  readonly values: Float32Array;
  /** Of the postings in each window: the least and the largest value. */
  readonly windowMins: Float32Array;
  readonly windowMaxs: Float32Array;
}

export function buildPart(
  { starts, indices, values }: SparseColumn,
  { from, to }: RowRange,
): SparsePart {
  const [first, end] = [starts[from]!, starts[to]!];
  const numberOf = new Map<number, number>();
  const lists = new Int32Array(end - first);
  const rows = new Int32Array(end - first);
  for (let row = from; row < to; row++) {
    for (let i = starts[row]!; i < starts[row + 1]!; i++) {
      const index = indices[i]!;
      let number = numberOf.get(index);
      if (number === undefined) {
        number = numberOf.size;
        numberOf.set(index, number);
      }
      lists[i - first] = number;
      rows[i - first] = row;
    }
  }
  const weights = values.subarray(first, end);
  return assemble({ from, to }, [...numberOf.keys()], { lists, rows, weights });
}

/** @param parts of neighbouring rows, in their order; at least one. */
export function mergeParts(parts: readonly SparsePart[]): SparsePart {
  const range = { from: parts[0]!.from, to: parts.at(-1)!.to };
  const { keys, postings } = joinPostings(
    parts,
    ({ indices }, list) => indices[list]!,
    ({ values }) => values,
  );
  return assemble(range, keys, postings);
}

/** The list of an index; -1 if no row has it. */
export function findIndex({ indices }: SparsePart, index: number): number {
  let low = 0;
  let high = indices.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = indices[middle]!;
    if (found === index) return middle;
    if (found < index) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** `keys` has an index for each number in the postings. */
function assemble(
  range: RowRange,
  keys: readonly number[],
  postings: Postings<Float32Array>,
): SparsePart {
  const order = Uint32Array.from(keys.keys()).sort((a, b) => keys[a]! - keys[b]!);
  const ranks = new Int32Array(keys.length);
  const indices = sharedUint32(keys.length);
  for (const [rank, number] of order.entries()) {
    ranks[number] = rank;
    indices[rank] = keys[number]!;
  }
  const { lists, weights: values } = sortPostings(range, postings, ranks);
  return { ...lists, indices, values, ...boundWindows(lists, values) };
}

/** What bounds the values of the postings of each window. */
function boundWindows({ windows, windowPostings }: PostingLists, values: Float32Array) {
  const windowMins = sharedFloat32(windows.length);
  const windowMaxs = sharedFloat32(windows.length);
  for (let at = 0; at < windows.length; at++) {
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let i = windowPostings[at]!; i < windowPostings[at + 1]!; i++) {
      min = Math.min(min, values[i]!);
      max = Math.max(max, values[i]!);
    }
    windowMins[at] = min;
    windowMaxs[at] = max;
  }
  return { windowMins, windowMaxs };
}
