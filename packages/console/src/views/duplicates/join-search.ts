// The join of a collection with another one: the form and the state of the join. Both survive a visit to
// another view, which stops a running join.

import type { CollectionRecord, JoinRequest } from '@sagitta/client';
import { useEffect, useRef } from 'react';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import { JoinMatches } from './join-matches.js';
import type { JoinDraft } from './join-settings.js';

export type JoinState =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly rowCount: number; readonly matchCount: number }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'done';
      readonly request: JoinRequest;
      readonly found: JoinMatches;
      readonly ending: 'complete' | 'stopped' | 'full';
    };

export const joinDraftOf = createStores<JoinDraft>({});
export const joinStateOf = createStores<JoinState>({ kind: 'none' });

/** Progress is reported once per so many rows, to keep its cost negligible. */
const ROWS_PER_REPORT = 200;

/** Starts and stops the join of a collection. */
export function useJoin({ id }: CollectionRecord) {
  const { client } = useStore(session);
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const store = joinStateOf(id);
  const start = async (request: JoinRequest) => {
    controller.current?.abort();
    const current = new AbortController();
    controller.current = current;
    const { signal } = current;
    // Ignore the outcome of a join that a newer one has replaced.
    const settle = (state: JoinState) => {
      if (controller.current === current) store.set(state);
    };
    settle({ kind: 'running', rowCount: 0, matchCount: 0 });
    const found = new JoinMatches();
    try {
      for await (const row of client.collection(id).join(request, { signal })) {
        found.addRow(row);
        if (found.isFull) break;
        if (found.rowCount % ROWS_PER_REPORT > 0) continue;
        settle({ kind: 'running', rowCount: found.rowCount, matchCount: found.matches.length });
      }
      settle({ kind: 'done', request, found, ending: found.isFull ? 'full' : 'complete' });
    } catch (error) {
      if (signal.aborted) settle({ kind: 'done', request, found, ending: 'stopped' });
      else settle({ kind: 'failed', error });
    }
  };
  return { start, stop: () => controller.current?.abort() };
}
