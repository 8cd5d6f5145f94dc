// The metadata of both sides of the visible matches, loaded in blocks of rows.

import { useQueries } from '@tanstack/react-query';
import { fetchMetadata } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import type { JoinedMetadata, JoinMatch } from './join-matches.js';

const ROWS_PER_BLOCK = 100;

interface JoinedMetadataOptions {
  /** `left`: the collection whose vectors are searched for; `right`: the collection that is searched. */
  readonly collections: { readonly left: string; readonly right: string };
  readonly matches: readonly JoinMatch[];
  /** The visible rows, including `last`. */
  readonly first: number;
  readonly last: number;
}

/** Returns the metadata by row; undefined until it has arrived. */
export function useJoinedMetadata(
  options: JoinedMetadataOptions,
): (row: number) => JoinedMetadata | undefined {
  const { collections, matches, first, last } = options;
  const { client } = useStore(session);
  const firstBlock = Math.floor(first / ROWS_PER_BLOCK);
  const blockCount = matches.length === 0 ? 0 : Math.floor(last / ROWS_PER_BLOCK) - firstBlock + 1;
  const blocks = useQueries({
    queries: Array.from({ length: blockCount }, (_, at) => {
      const from = (firstBlock + at) * ROWS_PER_BLOCK;
      const rows = matches.slice(from, from + ROWS_PER_BLOCK);
      const ids = [...new Set(rows.map(({ id }) => id))];
      const matchIds = [...new Set(rows.map(({ matchId }) => matchId))];
      return {
        queryKey: ['collection', collections.left, 'joined', collections.right, ids, matchIds],
        staleTime: 60_000,
        queryFn: async ({ signal }: { signal: AbortSignal }): Promise<JoinedMetadata> => {
          const [left, right] = await Promise.all([
            fetchMetadata(client.collection(collections.left), ids, { signal }),
            fetchMetadata(client.collection(collections.right), matchIds, { signal }),
          ]);
          return { left, right };
        },
      };
    }),
  });
  return (row) => blocks[Math.floor(row / ROWS_PER_BLOCK) - firstBlock]?.data;
}
