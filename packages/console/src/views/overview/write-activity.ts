// Writes of each collection while the overview is open, from the sequence that each write increases.
// Metrics do not distinguish collections, so that requests cannot be told by collection.

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

/** The writes between each two moments, the oldest first; none before the collection was seen. */
export function writesOf(history: readonly Sequences[], id: string): readonly number[] {
  return history.slice(1).map((after, at) => {
    const before = history[at]!.get(id);
    // A collection that was made again begins anew.
    return before === undefined ? 0 : Math.max(0, (after.get(id) ?? before) - before);
  });
}
