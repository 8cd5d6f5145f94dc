// The state of the query view for each collection: the draft and the last run. It outlives the view, so that it
// survives a visit to another tab.

import type { CollectionRecord, QueryRequest } from '@sagitta/client';
import { createStore, type ValueStore } from '../../api/store.js';
import type { QueryDraft } from './query-draft.js';
import { possibleRankings } from './query-request.js';

interface QueryRun {
  /** A new number runs the same requests again. */
  readonly number: number;
  readonly request: QueryRequest;
  /** The request of the second query, if any. */
  readonly other: QueryRequest | undefined;
}

export interface QueryState {
  readonly draft: QueryDraft;
  readonly run: QueryRun | undefined;
  /** The address segment from which the draft was last read, or to which it was last written. */
  readonly segment: string | undefined;
  readonly layout: 'table' | 'cards';
  /** The vector whose details are shown. */
  readonly openId: string | undefined;
  /** Whether the scores of all vectors are summarized, which takes longer. */
  readonly hasAllScores: boolean;
}

const states = new Map<string, ValueStore<QueryState>>();

export function queryState(collection: CollectionRecord): ValueStore<QueryState> {
  let state = states.get(collection.id);
  if (state === undefined) {
    state = createStore<QueryState>({
      draft: firstDraft(collection),
      run: undefined,
      segment: undefined,
      layout: 'table',
      openId: undefined,
      hasAllScores: false,
    });
    states.set(collection.id, state);
  }
  return state;
}

function firstDraft(collection: CollectionRecord): QueryDraft {
  const [by] = possibleRankings(collection);
  return by === undefined ? {} : { by };
}
