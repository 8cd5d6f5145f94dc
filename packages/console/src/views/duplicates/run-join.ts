// Runs joins: reads the rows of one into a collection of results, and lets a newer search replace a running one.

import type { JoinRequest, JoinRow, Vectors } from '@sagitta/client';
import { useEffect, useRef } from 'react';
import type { ValueStore } from '../../api/store.js';
import type { JobProgress } from '../../ui/remaining-time.js';

/** `full`: the limit of results was reached. If `full` or `stopped`, some vectors were not compared. */
export type JoinEnding = 'complete' | 'stopped' | 'full';

interface JoinResults {
  readonly rowCount: number;
  readonly isFull: boolean;
  addRow(row: JoinRow): void;
}

interface JoinOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: JobProgress) => void;
}

/** Progress is reported once per so many rows, to keep its cost negligible. */
const ROWS_PER_REPORT = 200;

/** Keeps the rows read so far if `signal` aborts. Throws SagittaClientError. */
export async function readJoin(
  vectors: Vectors,
  request: JoinRequest,
  results: JoinResults,
  { signal, onProgress }: JoinOptions,
): Promise<JoinEnding> {
  const startMs = performance.now();
  let totalCount = 0;
  const report = () =>
    onProgress({
      doneCount: results.rowCount,
      totalCount,
      elapsedMs: performance.now() - startMs,
    });
  const onRows = (_: number, rowCount: number) => {
    totalCount = rowCount;
  };
  try {
    for await (const row of vectors.join(request, { signal, onProgress: onRows })) {
      results.addRow(row);
      if (results.isFull) return 'full';
      if (results.rowCount % ROWS_PER_REPORT === 0) report();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return 'stopped';
  }
  return 'complete';
}

type FailedState = { readonly kind: 'failed'; readonly error: unknown };

/** Starts and stops searches that report to `store`. A newer search replaces a running one, and leaving the view stops it. */
export function useSearch<State>(store: ValueStore<State | FailedState>) {
  const controller = useRef<AbortController>(undefined);
  const stop = () => controller.current?.abort();
  useEffect(() => () => controller.current?.abort(), []);
  const start = async (
    search: (settle: (state: State) => void, signal: AbortSignal) => Promise<void>,
  ) => {
    stop();
    const current = new AbortController();
    controller.current = current;
    // Ignores the outcome of a search that a newer one has replaced.
    const settle = (state: State | FailedState) => {
      if (controller.current === current) store.set(state);
    };
    try {
      await search(settle, current.signal);
    } catch (error) {
      settle({ kind: 'failed', error });
    }
  };
  return { start, stop };
}
