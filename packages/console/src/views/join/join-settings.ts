// The form of a join, its settings after applying the collections' defaults, and the resulting request.

import type { CollectionRecord, JoinRequest, JsonObject, Metric } from '@sagitta/client';
import { type DenseVector, denseVectors } from '@sagitta/client';

export interface JoinDraft {
  readonly with?: string;
  readonly using?: string;
  readonly withUsing?: string;
  readonly metric?: Metric;
  /** The user's input. */
  readonly topKText?: string;
  readonly thresholdText?: string;
  readonly filter?: JsonObject | undefined;
}

export interface JoinSettings {
  readonly using: DenseVector;
  readonly withUsing: DenseVector;
  readonly metric: Metric;
  /** NaN if the text is not a whole number; undefined if it is empty. */
  readonly topK: number | undefined;
  readonly threshold: number | undefined;
}

/** The other collections with a vector of the same dimension as `using`. */
export function joinableCollections(
  collections: readonly CollectionRecord[],
  { id }: CollectionRecord,
  using: DenseVector,
): CollectionRecord[] {
  return collections.filter((other) => other.id !== id && vectorsMatching(other, using).length > 0);
}

/** The vectors of a collection with the same dimension as `using`. */
export function vectorsMatching(other: CollectionRecord, using: DenseVector): DenseVector[] {
  return denseVectors(other).filter(({ dimension }) => dimension === using.dimension);
}

/** The draft, completed with the collections' defaults. */
export function joinSettings(
  using: DenseVector,
  other: CollectionRecord,
  draft: JoinDraft,
): JoinSettings {
  const candidates = vectorsMatching(other, using);
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

/** Undefined if a number is missing or invalid. */
export function joinRequest(
  other: CollectionRecord,
  { using, withUsing, metric, topK, threshold }: JoinSettings,
  { filter }: JoinDraft,
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
  };
}
