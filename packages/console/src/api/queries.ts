// Server data that several views need, as queries that React Query caches by key.

import {
  type Client,
  type CollectionRecord,
  type FoundPath,
  type FoundSchema,
  type JsonObject,
  type Limits,
  type PrincipalRecord,
  type Readiness,
  SagittaClientError,
} from '@sagitta/client';
import {
  QueryClient,
  type UseQueryOptions,
  type UseQueryResult,
  useQuery,
} from '@tanstack/react-query';
import { stringifyExactJson } from '../../../../src/common/exact-json.js';
import { connection } from './connection.js';
import { session } from './session.js';

const LIVE_MS = 5_000;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Keys contain filters, which may contain bigints.
      queryKeyHashFn: (key) => stringifyExactJson(key),
      staleTime: 2_000,
      refetchOnWindowFocus: true,
      retry: (count, error) => isWorthRetrying(error) && count < 3,
      retryDelay: (count, error) => retryAfterMs(error) ?? 500 * 2 ** count,
    },
  },
});

// Everything is fetched again when the server is back, and after a sign-in.
connection.subscribe(() => {
  if (connection.get() === 'connected') void queryClient.invalidateQueries();
});
session.subscribe(() => void queryClient.invalidateQueries());

/** Fetches a collection and the list of collections again. */
export function refreshCollection(id: string): void {
  void queryClient.invalidateQueries({ queryKey: ['collection', id] });
  void queryClient.invalidateQueries({ queryKey: ['collections'] });
}

function isWorthRetrying(error: unknown): boolean {
  return error instanceof SagittaClientError && (error.status === 429 || error.status === 503);
}

function retryAfterMs(error: unknown): number | undefined {
  return error instanceof SagittaClientError ? error.retryAfterMs : undefined;
}

/** A query that uses the session's client. The signal aborts when the view is left. */
export function useApi<Data>(
  key: readonly unknown[],
  read: (client: Client, signal: AbortSignal) => Promise<Data>,
  options: Omit<UseQueryOptions<Data>, 'queryKey' | 'queryFn'> = {},
): UseQueryResult<Data> {
  const queryFn = ({ signal }: { signal: AbortSignal }) => read(session.get().client, signal);
  return useQuery({ queryKey: key, queryFn, ...options });
}

/** Every collection that the credential may see, in id order. */
export function useCollections(): UseQueryResult<readonly CollectionRecord[]> {
  return useApi(
    ['collections'],
    async (client, signal) => {
      const found: CollectionRecord[] = [];
      for await (const record of client.collections.all({ limit: 1_000 }, { signal })) {
        found.push(record);
      }
      return found;
    },
    { refetchInterval: LIVE_MS },
  );
}

export function useCollection(id: string): UseQueryResult<CollectionRecord> {
  return useApi(['collection', id], (client, signal) => client.collections.get(id, { signal }));
}

/** All metadata paths found in the vectors, in the server's order. */
export function useFoundPaths(id: string): UseQueryResult<readonly FoundPath[]> {
  return useApi(
    ['collection', id, 'paths'],
    async (client, signal) => (await readSchema(client, id, undefined, signal)).paths,
    { staleTime: 30_000 },
  );
}

/** Reads all pages of a schema. */
export async function readSchema(
  client: Client,
  id: string,
  filter: JsonObject | undefined,
  signal: AbortSignal,
): Promise<Pick<FoundSchema, 'paths' | 'count'>> {
  const paths: FoundPath[] = [];
  let after: string | undefined;
  let count = 0;
  do {
    const request = {
      limit: 1_000,
      ...(after !== undefined && { after }),
      ...(filter !== undefined && { filter }),
    };
    const page = await client.collection(id).schema(request, { signal });
    paths.push(...page.paths);
    count = page.count;
    after = page.next_after;
  } while (after !== undefined);
  return { paths, count };
}

/** The caller and its grants. */
export function usePrincipal(): UseQueryResult<PrincipalRecord> {
  return useApi(['principal'], (client, signal) => client.principal({ signal }), {
    staleTime: 30_000,
  });
}

export function useLimits(): UseQueryResult<Limits> {
  return useApi(['limits'], (client, signal) => client.limits({ signal }), { staleTime: 60_000 });
}

export function useReadiness(): UseQueryResult<Readiness> {
  return useApi(
    ['readiness'],
    (client, signal) => client.service.ready({ for: 'write' }, { signal }),
    { refetchInterval: LIVE_MS },
  );
}
