// The nearest neighbours of the hovered point, requested after the pointer has rested on it.

import type { CollectionRecord } from '@sagitta/client';
import { useMemo } from 'react';
import { useApi } from '../../api/queries.js';
import { useDebounced } from '../../ui/use-debounced.js';
import type { MapData } from './map-state.js';

const NEIGHBORS_SHOWN = 8;
/** Delays the request, so that a pointer that passes over points sends none. */
const HOVER_DELAY_MS = 100;

/** Indexes of points; neighbours outside the sample are left out. */
export function useNeighbors(
  { id: collectionId }: CollectionRecord,
  { ids, request }: MapData,
  hovered: number,
): readonly number[] {
  const pointOf = useMemo(() => new Map(ids.map((id, point) => [id, point])), [ids]);
  const rested = useDebounced(hovered, HOVER_DELAY_MS);
  const id = ids[rested];
  const { data } = useApi(
    ['collection', collectionId, 'neighbors', request.using, id],
    async (client, signal) => {
      const using = request.using === '' ? {} : { using: request.using };
      const query = { id: id!, top_k: NEIGHBORS_SHOWN, ...using };
      return (await client.collection(collectionId).query(query, { signal })).matches;
    },
    { enabled: id !== undefined, staleTime: 60_000 },
  );
  return useMemo(() => {
    if (rested !== hovered || data === undefined) return [];
    return data.flatMap((match) => pointOf.get(match.id) ?? []).filter((point) => point !== rested);
  }, [data, rested, hovered, pointOf]);
}
