// What the query view of each collection has: the draft as it is typed, and what was last run. It
// outlives the view, so that going to another tab loses nothing.

import type { CollectionRecord, QueryRequest } from '@sagitta/client';
import { createStore, type Store } from '../../api/store.js';
import type { QueryDraft } from './query-draft.js';
import { possibleRankings } from './query-request.js';

interface QueryRun {
  /** Another number runs the same requests again. */
  readonly number: number;
  readonly request: QueryRequest;
  /** Of the second query, if there is one. */
  readonly other: QueryRequest | undefined;
}

export interface QueryState {
  readonly draft: QueryDraft;
  readonly run: QueryRun | undefined;
  /** The segment of the address that the draft was last read from or written to. */
  readonly segment: string | undefined;
  readonly layout: 'table' | 'cards';
  /** The vector whose details are shown. */
  readonly openId: string | undefined;
  /** Scores of all vectors are summarized, which takes longer. */
  readonly hasAllScores: boolean;
}

const states = new Map<string, Store<QueryState>>();

export function queryState(collection: CollectionRecord): Store<QueryState> {
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
