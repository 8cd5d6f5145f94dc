// Turns a draft into a request, or says what is missing.

import type { CollectionRecord, QueryMembers, QueryRequest } from '@sagitta/client';
import { type DimensionedVector, vectorsOf } from '@sagitta/client';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { parseVector } from './parse-vector.js';
import { type QueryBy, type QueryDraft, rankingOf } from './query-draft.js';

export const K_DEFAULT = 10;
const K_MAX = 1_000;

export type BuiltRequest =
  | { readonly request: QueryRequest; readonly problem?: never }
  | { readonly request?: never; readonly problem: string };

/** The request returns pages of `k` matches, through all vectors that pass the filter. */
export function buildRequest(collection: CollectionRecord, draft: QueryDraft): BuiltRequest {
  const ranking = rankBy(collection, draft);
  if ('problem' in ranking) return ranking;
  const { k = K_DEFAULT, threshold, filter, metric } = draft;
  const using = draft.using ?? searchedVector(collection, undefined)?.name;
  if (!Number.isInteger(k) || k < 1 || k > K_MAX) {
    return { problem: `Found ${k} matches per page; expected a whole number from 1 to ${K_MAX}.` };
  }
  const isByWords = rankingOf(draft) === 'text';
  return {
    request: {
      ...ranking,
      ...(using !== undefined && using !== UNNAMED && !isByWords && { using }),
      ...(metric !== undefined && !isByWords && { metric }),
      ...(filter !== undefined && { filter }),
      ...(threshold !== undefined && { score_threshold: threshold }),
      limit: k,
      include_metadata: true,
    },
  };
}

type Ranking =
  | Required<Pick<QueryMembers, 'id'>>
  | Required<Pick<QueryMembers, 'vector'>>
  | Required<Pick<QueryMembers, 'text'>>
  | Required<Pick<QueryMembers, 'recommend'>>;

function rankBy(
  collection: CollectionRecord,
  draft: QueryDraft,
): Ranking | { readonly problem: string } {
  switch (rankingOf(draft)) {
    case 'id':
      if (!draft.id) return { problem: 'Enter the id of a vector.' };
      return { id: draft.id };
    case 'vector': {
      if (!draft.vector?.trim()) return { problem: 'Paste the numbers of a vector.' };
      const dimension = searchedVector(collection, draft.using)?.dimension ?? 0;
      const { values, problem } = parseVector(draft.vector, dimension);
      return values === undefined ? { problem } : { vector: values };
    }
    case 'text':
      if (!draft.words?.trim()) return { problem: 'Enter words to search for.' };
      return { text: { query: draft.words } };
    case 'examples': {
      const { positive = [], negative = [], strategy } = draft;
      const isEnough =
        positive.length > 0 ||
        (negative.length > 0 && strategy !== undefined && strategy !== 'average_vector');
      if (!isEnough) return { problem: 'Add an example that matches should be near to.' };
      return {
        recommend: {
          ...(positive.length > 0 && { positive }),
          ...(negative.length > 0 && { negative }),
          ...(strategy !== undefined && { strategy }),
        },
      };
    }
  }
}

/** The vectors that queries can search. */
export function searchableVectors(collection: CollectionRecord): DimensionedVector[] {
  return vectorsOf(collection).filter((vector) => vector.kind !== 'sparse');
}

/** The vector to search, by default the first; undefined if no vector has the name. */
export function searchedVector(
  collection: CollectionRecord,
  using: string | undefined,
): DimensionedVector | undefined {
  const vectors = searchableVectors(collection);
  return using === undefined ? vectors[0] : vectors.find(({ name }) => name === using);
}

/** The ways to rank that the collection supports. */
export function possibleRankings(collection: CollectionRecord): QueryBy[] {
  const hasVectors = searchableVectors(collection).length > 0;
  const byVectors: QueryBy[] = hasVectors ? ['id', 'vector', 'examples'] : [];
  return collection.text === undefined ? byVectors : [...byVectors, 'text'];
}
