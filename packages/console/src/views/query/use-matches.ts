// The matches of a query, page by page from one snapshot, with the duration of each request.

import {
  decodeValues,
  type JsonObject,
  type Match,
  type QueryReply,
  type QueryRequest,
} from '@sagitta/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';

export type ResultMatch = Match<JsonObject, ArrayLike<number>>;

export interface FoundPage {
  /** As the server sent it. */
  readonly reply: QueryReply;
  /** The time that the page waited for the reply. */
  readonly totalMs: number;
}

export interface Matches {
  readonly matches: readonly ResultMatch[];
  /** The first page, which contains the total and everything else that was requested with the matches. */
  readonly first: FoundPage | undefined;
  readonly error: unknown;
  readonly isRunning: boolean;
  /** Undefined if all matches have been read, or while a page is being read. */
  readonly readMore: (() => void) | undefined;
  readonly isReadingMore: boolean;
  readonly retry: () => void;
}

/** Values that the request asked for as base64 become numbers, which pictures need. */
function withNumbers({ values, ...match }: Match): ResultMatch {
  if (values === undefined) return match as ResultMatch;
  return {
    ...match,
    values: typeof values === 'string' ? decodeValues(values) : values,
  } as ResultMatch;
}

/** Runs the request once, and again only when `runNumber` or the request changes. */
export function useMatches(
  collectionId: string,
  request: QueryRequest | undefined,
  runNumber: number,
): Matches {
  const { client } = useStore(session);
  const query = useInfiniteQuery({
    queryKey: ['collection', collectionId, 'matches', request, runNumber],
    queryFn: async ({ pageParam, signal }): Promise<FoundPage> => {
      const body = pageParam === undefined ? request! : { cursor: pageParam };
      const startMs = performance.now();
      const reply = await client.collection(collectionId).query(body, { signal });
      return { reply, totalMs: performance.now() - startMs };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ reply }) => reply.next_cursor,
    enabled: request !== undefined,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    // The following pages need the snapshot of the first, which expires after some minutes.
    retry: false,
  });
  const pages = query.data?.pages;
  const matches = useMemo(
    () => (pages ?? []).flatMap(({ reply }) => reply.matches.map(withNumbers)),
    [pages],
  );
  return {
    matches,
    first: pages?.[0],
    error: query.error ?? undefined,
    isRunning: query.isFetching,
    readMore: query.hasNextPage && !query.isFetching ? () => void query.fetchNextPage() : undefined,
    isReadingMore: query.isFetchingNextPage,
    retry: () => void query.refetch(),
  };
}
