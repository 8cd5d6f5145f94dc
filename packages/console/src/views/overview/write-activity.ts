// The writes of each collection while the overview is open, from its sequence, which every write increases.
// Metrics cannot be used, because they do not distinguish collections.

import type { CollectionRecord } from '@sagitta/client';

/** The sequence of each collection at one moment. */
export type Sequences = ReadonlyMap<string, number>;

const MOMENTS_MAX = 60;

export function addSequences(
  history: readonly Sequences[],
  collections: readonly CollectionRecord[],
): readonly Sequences[] {
  const now = new Map(collections.map(({ id, sequence }) => [id, sequence]));
  return [...history.slice(1 - MOMENTS_MAX), now];
}

/** The writes between every two moments, oldest first; 0 before the collection was first seen. */
export function writesOf(history: readonly Sequences[], id: string): readonly number[] {
  return history.slice(1).map((after, at) => {
    const before = history[at]!.get(id);
    // The sequence of a recreated collection starts again.
    return before === undefined ? 0 : Math.max(0, (after.get(id) ?? before) - before);
  });
}
