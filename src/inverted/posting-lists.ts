// Posting lists of consecutive rows of a segment: for every key, such as a term of a text, the rows that
// contain it and a weight for each. Lists are cut into windows of rows, which a search visits or skips.
// They are immutable and live in shared memory.

import { sharedInt32, sharedLike } from '../common/shared-array.js';

/**
 * The size of a window, the unit that a search skips when its score bound is too low. Smaller windows have
 * tighter bounds but cost more.
 */
export const WINDOW_BITS = 9;
export const WINDOW_ROWS = 1 << WINDOW_BITS;

/** The rows from..to of a segment that a run covers. */
export interface RunRange {
  readonly from: number;
  readonly to: number;
}

export interface PostingLists extends RunRange {
  /** List i holds the postings `postingStarts[i]..postingStarts[i + 1]`. */
  readonly postingStarts: Int32Array;
  /** The row of each posting, ascending within a list. */
  readonly rows: Int32Array;
  /** List i spans the entries `windowStarts[i]..windowStarts[i + 1]` of `windows`, one per window it has postings in. */
  readonly windowStarts: Int32Array;
  /** The number of each window (row >>> WINDOW_BITS). */
  readonly windows: Int32Array;
  /** The first posting of each window, followed by the total number of postings. */
  readonly windowPostings: Int32Array;
}

type Weights = Int32Array | Float32Array;

/** Postings of lists in any order; the rows of each list ascend. */
export interface Postings<Type extends Weights> {
  /** The list of each posting, below the number of keys. */
  readonly lists: Int32Array;
  readonly rows: Int32Array;
  readonly weights: Type;
}

export interface WeightedLists<Type extends Weights> {
  readonly lists: PostingLists;
  /** The weight of each posting, in the order of `lists.rows`. */
  readonly weights: Type;
}

/** @param ranks the index in the result of each list. */
export function sortPostings<Type extends Weights>(
  { from, to }: RunRange,
  postings: Postings<Type>,
  ranks: Int32Array,
): WeightedLists<Type> {
  const { postingStarts, rows, weights } = sortByRank(postings, ranks);
  return { lists: { from, to, postingStarts, rows, ...cutWindows(postingStarts, rows) }, weights };
}

/** A counting sort, which is stable: rows stay in order. */
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

/** Numbers keys in the order of their first appearance. */
export class KeyNumbers<Key> {
  readonly #numbers = new Map<Key, number>();

  numberOf(key: Key): number {
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(key, number);
    }
    return number;
  }

  /** The key of each number. */
  keys(): Key[] {
    return [...this.#numbers.keys()];
  }
}

/** Concatenates the postings of neighbouring runs and numbers the lists by the first appearance of their keys. */
export function joinPostings<Run extends PostingLists, Key, Type extends Weights>(
  runs: readonly Run[],
  keyAt: (run: Run, list: number) => Key,
  weightsOf: (run: Run) => Type,
): { readonly keys: readonly Key[]; readonly postings: Postings<Type> } {
  const numbers = new KeyNumbers<Key>();
  const postingCount = runs.reduce((sum, { rows }) => sum + rows.length, 0);
  const lists = new Int32Array(postingCount);
  const rows = new Int32Array(postingCount);
  const weights = sharedLike(weightsOf(runs[0]!), postingCount);
  let next = 0;
  for (const run of runs) {
    rows.set(run.rows, next);
    weights.set(weightsOf(run), next);
    for (let list = 0; list < run.postingStarts.length - 1; list++) {
      const [start, end] = [run.postingStarts[list]!, run.postingStarts[list + 1]!];
      lists.fill(numbers.numberOf(keyAt(run, list)), next + start, next + end);
    }
    next += run.rows.length;
  }
  return { keys: numbers.keys(), postings: { lists, rows, weights } };
}

/** Returns the number of postings in a list; 0 for list -1. */
export function countPostings({ postingStarts }: PostingLists, list: number): number {
  return list < 0 ? 0 : postingStarts[list + 1]! - postingStarts[list]!;
}

/** Returns the total bytes of the arrays that are members of the object. */
export function arrayBytes(run: object): number {
  return Object.values(run).reduce(
    (sum: number, member: unknown) => sum + (ArrayBuffer.isView(member) ? member.byteLength : 0),
    0,
  );
}

function sharedFrom(values: readonly number[]): Int32Array {
  const array = sharedInt32(values.length);
  array.set(values);
  return array;
}
