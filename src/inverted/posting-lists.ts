// Posting lists of consecutive rows of a segment: for every key, such as a term of a text, the rows that
// have it, and a weight for each. They are cut into windows of rows, which a search visits or skips. Lists
// are immutable and in shared memory.

import { sharedInt32, sharedLike } from '../common/shared-array.js';

/**
 * Rows of a window: the unit that a search skips when its bound is low. Bounds of smaller windows are
 * closer, but cost more.
 */
export const WINDOW_BITS = 9;
export const WINDOW_ROWS = 1 << WINDOW_BITS;

/** Rows of a segment: from..to. */
export interface RowRange {
  readonly from: number;
  readonly to: number;
}

export interface PostingLists extends RowRange {
  /** List i has the postings `postingStarts[i]..postingStarts[i + 1]`. */
  readonly postingStarts: Int32Array;
  /** The row of each posting, ascending within a list. */
  readonly rows: Int32Array;
  /** List i has the windows `windowStarts[i]..windowStarts[i + 1]`: those with any of its postings. */
  readonly windowStarts: Int32Array;
  /** Of each window: its number (row >>> WINDOW_BITS) and its first posting; one more posting ends the last. */
  readonly windows: Int32Array;
  readonly windowPostings: Int32Array;
}

type Weights = Int32Array | Float32Array;

/** Postings in no particular order of lists, rows ascending within each list. */
export interface Postings<Type extends Weights> {
  /** Numbers of lists, below the number of keys. */
  readonly lists: Int32Array;
  readonly rows: Int32Array;
  readonly weights: Type;
}

export interface WeightedLists<Type extends Weights> {
  readonly lists: PostingLists;
  /** Of each posting, in the order of `lists.rows`. */
  readonly weights: Type;
}

/** @param ranks the position that each list gets, by its number. */
export function sortPostings<Type extends Weights>(
  { from, to }: RowRange,
  postings: Postings<Type>,
  ranks: Int32Array,
): WeightedLists<Type> {
  const { postingStarts, rows, weights } = sortByRank(postings, ranks);
  return { lists: { from, to, postingStarts, rows, ...cutWindows(postingStarts, rows) }, weights };
}

/** A counting sort, which keeps the order of the rows. */
function sortByRank<Type extends Weights>(
  { lists, rows, weights }: Postings<Type>,
  ranks: Int32Array,
) {
  const postingStarts = sharedInt32(ranks.length + 1);
  for (const list of lists) postingStarts[ranks[list]! + 1]!++;
  for (let i = 0; i < ranks.length; i++) postingStarts[i + 1]! += postingStarts[i]!;
  const next = postingStarts.slice();
  const sortedRows = sharedInt32(rows.length);
  const sortedWeights = sharedLike(weights);
  for (let i = 0; i < rows.length; i++) {
    const at = next[ranks[lists[i]!]!]!++;
    sortedRows[at] = rows[i]!;
    sortedWeights[at] = weights[i]!;
  }
  return { postingStarts, rows: sortedRows, weights: sortedWeights };
}

function cutWindows(postingStarts: Int32Array, rows: Int32Array) {
  const listCount = postingStarts.length - 1;
  const windowStarts = sharedInt32(listCount + 1);
  const windows: number[] = [];
  const windowPostings: number[] = [];
  for (let list = 0; list < listCount; list++) {
    for (let i = postingStarts[list]!; i < postingStarts[list + 1]!; i++) {
      const window = rows[i]! >>> WINDOW_BITS;
      if (windows.length > windowStarts[list]! && windows.at(-1) === window) continue;
      windows.push(window);
      windowPostings.push(i);
    }
    windowStarts[list + 1] = windows.length;
  }
  windowPostings.push(rows.length);
  return { windowStarts, windows: sharedFrom(windows), windowPostings: sharedFrom(windowPostings) };
}

/** The postings of neighbouring parts, in their order, with lists numbered by the first appearance of their keys. */
export function joinPostings<Part extends PostingLists, Key, Type extends Weights>(
  parts: readonly Part[],
  keyAt: (part: Part, list: number) => Key,
  weightsOf: (part: Part) => Type,
): { readonly keys: readonly Key[]; readonly postings: Postings<Type> } {
  const numberOf = new Map<Key, number>();
  const postingCount = parts.reduce((sum, { rows }) => sum + rows.length, 0);
  const lists = new Int32Array(postingCount);
  const rows = new Int32Array(postingCount);
  const weights = sharedLike(weightsOf(parts[0]!), postingCount);
  let next = 0;
  for (const part of parts) {
    rows.set(part.rows, next);
    weights.set(weightsOf(part), next);
    for (let list = 0; list < part.postingStarts.length - 1; list++) {
      const key = keyAt(part, list);
      let number = numberOf.get(key);
      if (number === undefined) {
        number = numberOf.size;
        numberOf.set(key, number);
      }
      const [start, end] = [part.postingStarts[list]!, part.postingStarts[list + 1]!];
      lists.fill(number, next + start, next + end);
    }
    next += part.rows.length;
  }
  return { keys: [...numberOf.keys()], postings: { lists, rows, weights } };
}

/** The number of postings of a list; 0 for -1. */
export function countPostings({ postingStarts }: PostingLists, list: number): number {
  return list < 0 ? 0 : postingStarts[list + 1]! - postingStarts[list]!;
}

/** Bytes of the arrays that are members of the object. */
export function arrayBytes(part: object): number {
  return Object.values(part).reduce(
    (sum: number, member: unknown) => sum + (ArrayBuffer.isView(member) ? member.byteLength : 0),
    0,
  );
}

function sharedFrom(values: readonly number[]): Int32Array {
  const array = sharedInt32(values.length);
  array.set(values);
  return array;
}
