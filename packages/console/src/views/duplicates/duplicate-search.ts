// The search for duplicates in a collection: the form and the state of the search, with the pairs found so far. Both
// survive a visit to another view, which stops a running search.

import type { CollectionRecord, JoinRequest, JsonObject, Metric } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import type { JobProgress } from '../../ui/remaining-time.js';
import type { KeepChoices, KeepRule } from './keep-rules.js';
import { type JoinEnding, readJoin, useSearch } from './run-join.js';
import { type GroupOrder, groupSchedule, SimilarPairs } from './similar-pairs.js';

export interface SearchDraft {
  /** Absent until the user chooses a vector. */
  readonly using?: string;
  readonly metric?: Metric;
  /** The user's input; absent for the suggested threshold. */
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
  /** Undefined while the search runs. */
  readonly ending: JoinEnding | undefined;
}

export type SearchState =
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'running' | 'done';
      readonly result: DuplicateResult;
      /** Changes when the groups do, because `result.pairs` is changed in place. */
      readonly version: number;
      /** Of the last report; undefined before the first one. */
      readonly progress: JobProgress | undefined;
    };

export const searchDraftOf = createStores<SearchDraft>({});
export const searchStateOf = createStores<SearchState>({ kind: 'none' });
export const groupOrderOf = createStores<GroupOrder>('found');
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

/**
 * The draft, completed with the collection's defaults.
 * @param suggested the threshold if the user has not chosen one; undefined until it is known
 */
export function searchSettings(
  collection: CollectionRecord,
  draft: SearchDraft,
  suggested: number | undefined,
): SearchSettings {
  const vectors = denseVectors(collection);
  const vector = vectors.find(({ name }) => name === draft.using) ?? vectors[0]!;
  const metric = draft.metric ?? vector.metric;
  const thresholdText = draft.thresholdText ?? (suggested === undefined ? '' : String(suggested));
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
      const result = { request, pairs, ending: undefined };
      const isDue = groupSchedule();
      let version = 0;
      const onProgress = (progress?: JobProgress) => {
        if (isDue(pairs)) version++;
        settle({ kind: 'running', result, version, progress });
      };
      onProgress();
      keepChoicesOf(id).set(new Map());
      const join = { ...selectionOf(request), scoreThreshold: threshold };
      const ending = await readJoin(client.collection(id), join, pairs, { signal, onProgress });
      const done = { request, pairs, ending };
      settle({ kind: 'done', result: done, version: version + 1, progress: undefined });
    });
  return { start: startSearch, stop };
}

/** The rows to compare, on both sides of a join. */
export function selectionOf({
  using,
  metric,
  filter,
}: Pick<DuplicateRequest, 'using' | 'metric' | 'filter'>): JoinRequest {
  return {
    metric,
    ...(using !== '' && { using, withUsing: using }),
    ...(filter !== undefined && { filter, withFilter: filter }),
  };
}
