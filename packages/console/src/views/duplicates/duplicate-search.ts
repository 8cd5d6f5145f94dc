// The search for duplicates of a collection: what the form has, and how far the search is. Both stay
// when another view is shown; a search that is under way is stopped then.

import type { CollectionRecord, JsonObject, Metric } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';
import { useEffect, useRef } from 'react';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import type { KeepChoices, KeepRule } from './keep-rules.js';
import { scoreScale } from './score-scale.js';
import { runSelfJoin, type SelfJoinProgress, type SelfJoinResult } from './self-join.js';

export interface SearchDraft {
  /** Absent until chosen. */
  readonly using?: string;
  readonly metric?: Metric;
  /** As typed; absent for the metric's own. */
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
      /** Counts the deletions that `result.pairs` has seen: it changes in place. */
      readonly version: number;
    };

export const searchDraftOf = createStores<SearchDraft>({});
export const searchStateOf = createStores<SearchState>({ kind: 'none' });
export const keepRuleOf = createStores<KeepRule>({ kind: 'first' });
export const keepChoicesOf = createStores<KeepChoices>(new Map());

export interface SearchSettings {
  /** What can be compared; never empty. */
  readonly vectors: readonly DenseVector[];
  readonly using: string;
  readonly metric: Metric;
  readonly thresholdText: string;
  /** Not a number when the text is not one. */
  readonly threshold: number;
  readonly filter: JsonObject | undefined;
}

/** The draft with what the collection gives for that which was not chosen. */
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
    // The end of a search that another one has replaced is of no interest.
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
