// Scrapes `/metrics` while a view shows it, and keeps a history, because rates are differences between
// scrapes. If the credential lacks the scope for it, views say so and show the rest.

import { SagittaClientError } from '@sagitta/client';
import type { UseQueryResult } from '@tanstack/react-query';
import { parseMetrics, type Scrape } from './metrics-text.js';
import { useApi } from './queries.js';

const SCRAPE_MS = 2_000;
/** Longer after a failure such as a missing scope, which seldom goes away by itself. */
const FAILED_SCRAPE_MS = 15_000;
/** Ten minutes. */
const SCRAPES_MAX = 300;
let history: readonly Scrape[] = [];

interface ScrapesResult
  extends Pick<UseQueryResult<readonly Scrape[]>, 'data' | 'error' | 'refetch'> {
  /** Whether the credential lacks the scope. */
  readonly isForbidden: boolean;
}

/** The scrapes of the last ten minutes, oldest first; at least one. */
export function useScrapes(): ScrapesResult {
  const { data, error, refetch } = useApi(
    ['metrics'],
    async (client, signal) => {
      const metrics = parseMetrics(await client.service.metrics({ signal }));
      history = [...history.slice(1 - SCRAPES_MAX), { timeMs: Date.now(), metrics }];
      return history;
    },
    { refetchInterval: ({ state }) => (state.error === null ? SCRAPE_MS : FAILED_SCRAPE_MS) },
  );
  // Hide the data that a previous credential was allowed to see.
  const isForbidden = error instanceof SagittaClientError && error.status === 403;
  return { data: isForbidden ? undefined : data, isForbidden, error, refetch };
}
