// The state of the query view for each collection: the drafts and the last run, which survive a visit to another tab,
// and the history, which the browser remembers.

import type { CollectionRecord } from '@sagitta/client';
import { stringifyExactJson } from '../../../../../src/common/exact-json.js';
import { createStore, type ValueStore } from '../../api/store.js';
import { newDraft, type QueryDraft, type QueryPair } from './query-draft.js';
import { type PastQuery, readHistory } from './query-history.js';

interface QueryRun extends QueryPair {
  /** A new number runs the same requests again. */
  readonly number: number;
  /** The drafts that were run; errors belong to their fields until they change. */
  readonly drafts: readonly [QueryDraft, QueryDraft | undefined];
}

export type ResultLayout = 'table' | 'cards' | 'json';

export interface QueryState {
  readonly draft: QueryDraft;
  /** The second query of a comparison. */
  readonly other: QueryDraft | undefined;
  /** What was typed into the request panes, until the forms change; undefined if they show the drafts. */
  readonly requestText: string | undefined;
  readonly otherText: string | undefined;
  readonly run: QueryRun | undefined;
  /** The address segment from which the drafts were last read, or to which they were last written. */
  readonly segment: string | undefined;
  readonly layout: ResultLayout;
  readonly isMoreShown: boolean;
  /** Undefined until the user opens or closes the list: it is open before the first run. */
  readonly isHistoryShown: boolean | undefined;
  /** The vector whose details are shown. */
  readonly openId: string | undefined;
}

/** On narrower pages, cards show more of a match than rows. */
const TABLE_WIDTH_MIN = 640;

const states = new Map<string, ValueStore<QueryState>>();

export function queryState(collection: CollectionRecord): ValueStore<QueryState> {
  let state = states.get(collection.id);
  if (state === undefined) {
    state = createStore<QueryState>({
      draft: newDraft(collection),
      other: undefined,
      requestText: undefined,
      otherText: undefined,
      run: undefined,
      segment: undefined,
      layout: window.innerWidth < TABLE_WIDTH_MIN ? 'cards' : 'table',
      isMoreShown: false,
      isHistoryShown: undefined,
      openId: undefined,
    });
    states.set(collection.id, state);
  }
  return state;
}

const STORAGE_KEY = 'sagitta.queries.';
const histories = new Map<string, ValueStore<readonly PastQuery[]>>();

/** The history of a collection; changes are remembered. */
export function queryHistory(collectionId: string): ValueStore<readonly PastQuery[]> {
  let history = histories.get(collectionId);
  if (history === undefined) {
    history = createStore(readHistory(localStorage.getItem(STORAGE_KEY + collectionId)));
    const { get } = history;
    history.subscribe(() => remember(collectionId, get()));
    histories.set(collectionId, history);
  }
  return history;
}

function remember(collectionId: string, list: readonly PastQuery[]): void {
  try {
    localStorage.setItem(STORAGE_KEY + collectionId, stringifyExactJson(list));
  } catch {
    // The storage is full or forbidden; the list still works until the page is closed.
  }
}
