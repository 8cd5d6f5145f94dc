// The join of a collection with another one: the form and the state of the join. Both survive a visit to
// another view, which stops a running join.

import type { CollectionRecord, JoinRequest } from '@sagitta/client';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import type { JobProgress } from '../../ui/remaining-time.js';
import { type JoinEnding, readJoin, useSearch } from '../duplicates/run-join.js';
import { JoinMatches } from './join-matches.js';
import type { JoinDraft } from './join-settings.js';

export type JoinState =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'running';
      /** Undefined before the first report. */
      readonly progress: JobProgress | undefined;
      readonly matchCount: number;
    }
  | { readonly kind: 'failed'; readonly error: unknown }
  | {
      readonly kind: 'done';
      readonly request: JoinRequest;
      readonly found: JoinMatches;
      readonly ending: JoinEnding;
    };

export const joinDraftOf = createStores<JoinDraft>({});
export const joinStateOf = createStores<JoinState>({ kind: 'none' });

/** Starts and stops the join of a collection. */
export function useJoin({ id }: CollectionRecord) {
  const { client } = useStore(session);
  const { start, stop } = useSearch<JoinState>(joinStateOf(id));
  const startJoin = (request: JoinRequest) =>
    start(async (settle, signal) => {
      const found = new JoinMatches();
      const onProgress = (progress?: JobProgress) =>
        settle({ kind: 'running', progress, matchCount: found.matches.length });
      onProgress();
      const ending = await readJoin(client.collection(id), request, found, { signal, onProgress });
      settle({ kind: 'done', request, found, ending });
    });
  return { start: startJoin, stop };
}
