// The search for duplicates in a collection: the form and the state of the search. Both survive a visit to
// another view, which stops a running search.

import type { CollectionRecord, JsonObject, Metric } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';
import { useEffect, useRef } from 'react';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import type { KeepChoices, KeepRule } from './keep-rules.js';
import { scoreScale } from './score-scale.js';
import { runSelfJoin, type SelfJoinProgress, type SelfJoinResult } from './self-join.js';

export interface SearchDraft {
  /** Absent until the user chooses a vector. */
  readonly using?: string;
  readonly metric?: Metric;
  /** The user's input; absent for the metric's default. */
  readonly thresholdText?: string;
  readonly filter?: JsonObject | undefined;
}

export type SearchState =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly progress: SelfJoinProgress }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'done';
      readonly result: SelfJoinResult;
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
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const store = searchStateOf(id);
  const start = async ({ using, metric, threshold, filter }: SearchSettings) => {
    controller.current?.abort();
    const current = new AbortController();
    controller.current = current;
    const { signal } = current;
    // Ignore the outcome of a search that a newer one has replaced.
    const settle = (state: SearchState) => {
      if (controller.current === current) store.set(state);
    };
    store.set({ kind: 'running', progress: { rowCount: 0, pairCount: 0 } });
    keepChoicesOf(id).set(new Map());
    try {
      const request = { using, metric, threshold, filter };
      const result = await runSelfJoin(client.collection(id), request, {
        signal,
        onProgress: (progress) => settle({ kind: 'running', progress }),
      });
      settle({ kind: 'done', result, version: 0 });
    } catch (error) {
      settle({ kind: 'failed', error });
    }
  };
  return { start, stop: () => controller.current?.abort() };
}
