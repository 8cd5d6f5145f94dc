// What a collection can be searched by: its vectors, its text index, and its embedding model.

import { type CollectionRecord, type CollectionVector, vectorsOf } from '@sagitta/client';
import type { QueryBy } from './query-draft.js';

/** Whether the collection turns texts into vectors. */
export function hasMeaning(collection: CollectionRecord): boolean {
  return collection.embed !== undefined;
}

/** How words rank: by the text index, by meaning, or both; undefined if the collection has neither. */
export function wordsKind(collection: CollectionRecord): 'hybrid' | 'text' | 'embed' | undefined {
  const isIndexed = collection.text !== undefined;
  if (hasMeaning(collection)) return isIndexed ? 'hybrid' : 'embed';
  return isIndexed ? 'text' : undefined;
}

/** The vectors that a ranking can search. */
export function vectorsFor(collection: CollectionRecord, by: QueryBy): CollectionVector[] {
  return vectorsOf(collection).filter(({ kind }) => {
    if (by === 'sparse') return kind === 'sparse';
    if (by === 'multi_vector') return kind === 'multi';
    if (by === 'id') return kind !== 'sparse';
    return by !== 'text' && kind === 'dense';
  });
}

/** The vector to search, by default the first that the ranking can search; undefined if no vector has the name. */
export function searchedVector(
  collection: CollectionRecord,
  by: QueryBy,
  using: string | undefined,
): Exclude<CollectionVector, { kind: 'sparse' }> | undefined {
  const vectors = vectorsFor(collection, by).filter((vector) => vector.kind !== 'sparse');
  return using === undefined ? vectors[0] : vectors.find(({ name }) => name === using);
}

/** The ways to rank that the collection supports. */
export function possibleRankings(collection: CollectionRecord): QueryBy[] {
  const has = (by: QueryBy) => vectorsFor(collection, by).length > 0;
  const words = wordsKind(collection);
  return [
    ...(words === 'hybrid' ? (['hybrid', 'text', 'embed'] as const) : words ? [words] : []),
    ...(['id', 'vector', 'multi_vector', 'sparse', 'recommend', 'discover'] as const).filter(has),
  ];
}
