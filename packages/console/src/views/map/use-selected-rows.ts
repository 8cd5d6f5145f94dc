// The rows of the table of selected points, fetched in blocks as they come into view.

import type { CollectionRecord } from '@sagitta/client';
import { useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { pictureShape, type ShownVector } from '../vectors/preview.js';

const ROWS_PER_BLOCK = 100;

interface SelectedRows {
  readonly hasPictures: boolean;
  readonly rowAt: (index: number) => ShownVector | undefined;
  /** `last` is the first row that is not in view. */
  readonly onRangeChange: (first: number, last: number) => void;
}

export function useSelectedRows(
  collection: CollectionRecord,
  ids: readonly string[],
): SelectedRows {
  const { client } = useStore(session);
  const hasPictures = pictureShape(collection) !== undefined;
  const [range, setRange] = useState({ first: 0, last: 1 });
  const firstBlock = Math.floor(range.first / ROWS_PER_BLOCK);
  const lastBlock = Math.floor(Math.max(range.first, range.last - 1) / ROWS_PER_BLOCK);
  const blocks = useQueries({
    queries: Array.from({ length: lastBlock - firstBlock + 1 }, (_, at) => {
      const from = (firstBlock + at) * ROWS_PER_BLOCK;
      const some = ids.slice(from, from + ROWS_PER_BLOCK);
      return {
        queryKey: ['collection', collection.id, 'selected', some],
        staleTime: 60_000,
        enabled: some.length > 0,
        queryFn: async ({ signal }: { signal: AbortSignal }) => {
          const include = { include_values: hasPictures };
          const reply = await client.collection(collection.id).fetch(some, include, { signal });
          return new Map(reply.vectors.map((vector) => [vector.id, vector]));
        },
      };
    }),
  });
  const onRangeChange = useCallback((first: number, last: number) => setRange({ first, last }), []);
  return {
    hasPictures,
    rowAt(index) {
      const block = blocks[Math.floor(index / ROWS_PER_BLOCK) - firstBlock]?.data;
      const id = ids[index];
      // A vector that has been deleted still has its id.
      return block === undefined || id === undefined ? undefined : (block.get(id) ?? { id });
    },
    onRangeChange,
  };
}
