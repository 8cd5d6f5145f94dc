// The search for duplicates in a collection: the form and the state of the search. Both survive a visit to
// another view, which stops a running search.

import type { CollectionRecord, JoinRequest, JsonObject, Metric } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import type { KeepChoices, KeepRule } from './keep-rules.js';
import { type JoinEnding, readJoin, useSearch } from './run-join.js';
import { scoreScale } from './score-scale.js';
import { SimilarPairs } from './similar-pairs.js';

export interface SearchDraft {
  /** Absent until the user chooses a vector. */
  readonly using?: string;
  readonly metric?: Metric;
  /** The user's input; absent for the metric's default. */
  readonly thresholdText?: string;
  readonly filter?: JsonObject | undefined;
}

interface DuplicateRequest {
  /** Empty for the unnamed vector. */
  readonly using: string;
  readonly metric: Metric;
  readonly threshold: number;
  readonly filter: JsonObject | undefined;
}

export interface DuplicateResult {
  readonly request: DuplicateRequest;
  readonly pairs: SimilarPairs;
  readonly ending: JoinEnding;
}

export type SearchState =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly progress: Pick<SimilarPairs, 'rowCount' | 'pairCount'> }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'done';
      readonly result: DuplicateResult;
      /** Changes with every deletion, because `result.pairs` is changed in place. */
      readonly version: number;
    };

export const searchDraftOf = createStores<SearchDraft>({});
export const searchStateOf = createStores<SearchState>({ kind: 'none' });
export const keepRuleOf = createStores<KeepRule>({ kind: 'first' });
export const keepChoicesOf = createStores<KeepChoices>(new Map());

export interface SearchSettings {
  /** The vectors that can be compared; never empty. */
  readonly vectors: readonly DenseVector[];
  readonly using: string;
  readonly metric: Metric;
  readonly thresholdText: string;
  /** NaN if the text is not a number. */
  readonly threshold: number;
  readonly filter: JsonObject | undefined;
}

/** The draft, completed with the collection's defaults. */
export function searchSettings(collection: CollectionRecord, draft: SearchDraft): SearchSettings {
  const vectors = denseVectors(collection);
  const vector = vectors.find(({ name }) => name === draft.using) ?? vectors[0]!;
  const metric = draft.metric ?? vector.metric;
  const thresholdText = draft.thresholdText ?? String(scoreScale(metric).initial);
  const threshold = thresholdText.trim() === '' ? Number.NaN : Number(thresholdText);
  return { vectors, using: vector.name, metric, thresholdText, threshold, filter: draft.filter };
}

/** Starts and stops the search of a collection. */
export function useDuplicateSearch({ id }: CollectionRecord) {
  const { client } = useStore(session);
  const { start, stop } = useSearch<SearchState>(searchStateOf(id));
  const startSearch = ({ using, metric, threshold, filter }: SearchSettings) =>
    start(async (settle, signal) => {
      const request = { using, metric, threshold, filter };
      const pairs = new SimilarPairs();
      const onProgress = () => {
        const { rowCount, pairCount } = pairs;
        settle({ kind: 'running', progress: { rowCount, pairCount } });
      };
      onProgress();
      keepChoicesOf(id).set(new Map());
      const vectors = client.collection(id);
      const ending = await readJoin(vectors, joinOf(request), pairs, { signal, onProgress });
      settle({ kind: 'done', result: { request, pairs, ending }, version: 0 });
    });
  return { start: startSearch, stop };
}

function joinOf({ using, metric, threshold, filter }: DuplicateRequest): JoinRequest {
  return {
    metric,
    scoreThreshold: threshold,
    ...(using !== '' && { using, withUsing: using }),
    ...(filter !== undefined && { filter, withFilter: filter }),
  };
}
