// Joins a collection with itself, reports progress and collects the pairs.

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
  /** `full`: the limit of pairs was reached. If `full` or `stopped`, some vectors were not compared. */
  readonly ending: 'complete' | 'stopped' | 'full';
}

/** Progress is reported once per so many rows, to keep its cost negligible. */
const ROWS_PER_REPORT = 200;

/** If `signal` aborts, resolves to the pairs found so far. Throws SagittaClientError. */
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
