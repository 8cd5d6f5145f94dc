// A run of an inverted index of sparse vectors: over consecutive rows of a segment, it maps every vector index to the
// rows that contain it, with their values. Runs are immutable and live in shared memory. Merging neighbouring runs
// gives the same run as building all of their rows.

import { sharedFloat32, sharedUint32 } from '../common/shared-array.js';
import type { SparseColumn } from '../common/vectors.js';
import {
  joinPostings,
  KeyNumbers,
  type PostingLists,
  type Postings,
  type RunRange,
  sortPostings,
} from './posting-lists.js';

/** List i belongs to `indices[i]`. */
export interface SparseRun extends PostingLists {
  /** Ascending. */
  readonly indices: Uint32Array;
  /** The value of each posting: finite, not 0. */
  readonly values: Float32Array;
  /** The least and the largest value in each window. */
  readonly windowMins: Float32Array;
  readonly windowMaxs: Float32Array;
}

export function buildSparseRun(
  { starts, indices, values }: SparseColumn,
  { from, to }: RunRange,
): SparseRun {
  const [first, end] = [starts[from]!, starts[to]!];
  const numbers = new KeyNumbers<number>();
  const lists = new Int32Array(end - first);
  const rows = new Int32Array(end - first);
  for (let row = from; row < to; row++) {
    for (let i = starts[row]!; i < starts[row + 1]!; i++) {
      lists[i - first] = numbers.numberOf(indices[i]!);
      rows[i - first] = row;
    }
  }
  const weights = values.subarray(first, end);
  return assemble({ from, to }, numbers.keys(), { lists, rows, weights });
}

/** @param runs at least one, over neighbouring rows, in order. */
export function mergeSparseRuns(runs: readonly SparseRun[]): SparseRun {
  const range = { from: runs[0]!.from, to: runs.at(-1)!.to };
  const { keys, postings } = joinPostings(
    runs,
    ({ indices }, list) => indices[list]!,
    ({ values }) => values,
  );
  return assemble(range, keys, postings);
}

/** Returns the list of a vector index; -1 if no row contains it. */
export function findIndex({ indices }: SparseRun, index: number): number {
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

/** @param keys the vector index of each list of the postings. */
function assemble(
  range: RunRange,
  keys: readonly number[],
  postings: Postings<Float32Array>,
): SparseRun {
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

/** Computes the bounds of the values in each window. */
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
