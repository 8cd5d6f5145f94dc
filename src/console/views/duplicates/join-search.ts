// The join of a collection with another one: what the form has, and how far the join is. Both stay when
// another view is shown; a join that is under way is stopped then.

import { useEffect, useRef } from 'react';
import type { CollectionRecord, JoinRequest, JsonObject, Metric } from '../../../client/client.js';
import { session } from '../../api/session.js';
import { createStores, useStore } from '../../api/store.js';
import { type DenseVector, denseVectors } from '../dense-vectors.js';
import { JoinMatches } from './join-matches.js';

export interface JoinDraft {
  readonly with?: string;
  readonly using?: string;
  readonly withUsing?: string;
  readonly metric?: Metric;
  /** As typed. */
  readonly topKText?: string;
  readonly thresholdText?: string;
  readonly filter?: JsonObject | undefined;
  readonly withFilter?: JsonObject | undefined;
}

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

export interface JoinSettings {
  readonly using: DenseVector;
  readonly withUsing: DenseVector;
  readonly metric: Metric;
  /** Not a number when the text is not a whole number; undefined when it is empty. */
  readonly topK: number | undefined;
  readonly threshold: number | undefined;
}

/** The collections that have a vector of the dimension of `using`. */
export function joinableCollections(
  collections: readonly CollectionRecord[],
  { id }: CollectionRecord,
  using: DenseVector,
): CollectionRecord[] {
  return collections.filter((other) => other.id !== id && matching(other, using).length > 0);
}

/** The vectors of a collection that have the dimension of `using`. */
export function matching(other: CollectionRecord, using: DenseVector): DenseVector[] {
  return denseVectors(other).filter(({ dimension }) => dimension === using.dimension);
}

/** The draft with what the collections give for that which was not chosen. */
export function joinSettings(
  using: DenseVector,
  other: CollectionRecord,
  draft: JoinDraft,
): JoinSettings {
  const candidates = matching(other, using);
  const withUsing = candidates.find(({ name }) => name === draft.withUsing) ?? candidates[0]!;
  const topK = readNumber(draft.topKText ?? '1');
  return {
    using,
    withUsing,
    metric: draft.metric ?? withUsing.metric,
    topK: topK !== undefined && (!Number.isInteger(topK) || topK < 1) ? Number.NaN : topK,
    threshold: readNumber(draft.thresholdText ?? ''),
  };
}

function readNumber(text: string): number | undefined {
  return text.trim() === '' ? undefined : Number(text);
}

/** Undefined when a number is missing or wrong. */
export function joinRequest(
  other: CollectionRecord,
  { using, withUsing, metric, topK, threshold }: JoinSettings,
  { filter, withFilter }: JoinDraft,
): JoinRequest | undefined {
  if (topK === undefined && threshold === undefined) return undefined;
  if (Number.isNaN(topK) || Number.isNaN(threshold)) return undefined;
  return {
    with: other.id,
    metric,
    ...(using.name !== '' && { using: using.name }),
    ...(withUsing.name !== '' && { withUsing: withUsing.name }),
    ...(topK !== undefined && { topK }),
    ...(threshold !== undefined && { scoreThreshold: threshold }),
    ...(filter !== undefined && { filter }),
    ...(withFilter !== undefined && { withFilter }),
  };
}

/** Rows between two reports of progress, so that they cost nothing. */
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
    // The end of a join that another one has replaced is of no interest.
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
