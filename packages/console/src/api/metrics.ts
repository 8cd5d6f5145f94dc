// The metrics of the server and the traffic that it keeps, while a view shows them. If the credential lacks the scope
// for them, views say so and show the rest.

import { SagittaClientError, type Traffic } from '@sagitta/client';
import type { UseQueryResult } from '@tanstack/react-query';
import { type MetricSamples, parseMetrics } from './metrics-text.js';
import { useApi } from './queries.js';

const READ_MS = 5_000;
/** Longer after a failure such as a missing scope, which seldom goes away by itself. */
const FAILED_READ_MS = 15_000;

interface ScopedResult<Data> extends Pick<UseQueryResult<Data>, 'data' | 'error' | 'refetch'> {
  /** Whether the credential lacks the scope. */
  readonly isForbidden: boolean;
}

export function useMetrics(): ScopedResult<MetricSamples> {
  return useScoped(['metrics'], async (client, signal) =>
    parseMetrics(await client.service.metrics({ signal })),
  );
}

/** The last `minutes` that the server has kept. */
export function useTraffic(minutes: number): ScopedResult<Traffic> {
  return useScoped(['traffic', minutes], (client, signal) =>
    client.service.traffic({ minutes }, { signal }),
  );
}

function useScoped<Data>(
  key: readonly unknown[],
  read: Parameters<typeof useApi<Data>>[1],
): ScopedResult<Data> {
  const { data, error, refetch } = useApi(key, read, {
    refetchInterval: ({ state }) => (state.error === null ? READ_MS : FAILED_READ_MS),
  });
  // Hide the data that a previous credential was allowed to see.
  const isForbidden = error instanceof SagittaClientError && error.status === 403;
  return { data: isForbidden ? undefined : data, isForbidden, error, refetch };
}
