// Runs the join of a collection with itself, reports its progress, and gathers the pairs.

import type { CallOptions, JsonObject, Metric, Vectors } from '@sagitta/client';
import { SimilarPairs } from './similar-pairs.js';

export interface SelfJoinRequest {
  /** Empty for the unnamed vector. */
  readonly using: string;
  readonly metric: Metric;
  readonly threshold: number;
  readonly filter: JsonObject | undefined;
}

export interface SelfJoinProgress {
  readonly rowCount: number;
  readonly pairCount: number;
}

export interface SelfJoinResult {
  readonly request: SelfJoinRequest;
  readonly pairs: SimilarPairs;
  /** `full`: at the limit of pairs. Then, and when stopped, some vectors were not compared. */
  readonly ending: 'complete' | 'stopped' | 'full';
}

/** Rows between two reports of progress, so that they cost nothing. */
const ROWS_PER_REPORT = 200;

/** When `signal` aborts, it resolves to what was found until then. Throws SagittaClientError. */
export async function runSelfJoin(
  vectors: Vectors,
  request: SelfJoinRequest,
  options: CallOptions & {
    readonly signal: AbortSignal;
    readonly onProgress: (progress: SelfJoinProgress) => void;
  },
): Promise<SelfJoinResult> {
  const { signal, onProgress } = options;
  const pairs = new SimilarPairs();
  try {
    for await (const row of vectors.join(wireRequest(request), { signal })) {
      pairs.addRow(row);
      if (pairs.isFull) return { request, pairs, ending: 'full' };
      if (pairs.rowCount % ROWS_PER_REPORT === 0) {
        onProgress({ rowCount: pairs.rowCount, pairCount: pairs.pairCount });
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return { request, pairs, ending: 'stopped' };
  }
  return { request, pairs, ending: 'complete' };
}

function wireRequest({ using, metric, threshold, filter }: SelfJoinRequest) {
  return {
    metric,
    scoreThreshold: threshold,
    ...(using !== '' && { using, withUsing: using }),
    ...(filter !== undefined && { filter, withFilter: filter }),
  };
}
