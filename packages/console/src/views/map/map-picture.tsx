// The map canvas with the card of the hovered point and lines to its neighbours.

import type { CollectionRecord } from '@sagitta/client';
import { useMemo, useState } from 'react';
import type { Json } from '../../../../../src/common/types.js';
import { useApi } from '../../api/queries.js';
import { useStore } from '../../api/store.js';
import { useDebounced } from '../../ui/use-debounced.js';
import { formatValue } from '../vectors/preview.js';
import type { AreaLabel } from './area-labels.js';
import { HoverCard } from './hover-card.js';
import { MapCanvas } from './map-canvas.js';
import { hiddenEntriesOf, type MapData, mapSelectionOf } from './map-state.js';
import type { Description } from './text-worker.js';
import type { Tool } from './use-map-gestures.js';
import type { PointColours } from './use-point-colours.js';

interface MapPictureProps {
  readonly collection: CollectionRecord;
  readonly data: MapData;
  /** Row-major [pointCount, 2]. */
  readonly positions: Float32Array;
  readonly isMoving: boolean;
  readonly colours: PointColours;
  readonly colourPath: string;
  readonly areLabelsShown: boolean;
  /** Undefined until the areas have been described. */
  readonly description: Description | undefined;
  readonly found: readonly number[];
  readonly destination: { readonly point: number } | undefined;
  readonly tool: Tool;
  readonly fitKey: string;
}

export function MapPicture(props: MapPictureProps) {
  const { collection, data, colours, colourPath, areLabelsShown, description, ...shown } = props;
  const selectionStore = mapSelectionOf(collection.id);
  const [hovered, setHovered] = useState(-1);
  const neighbors = useNeighbors(collection, data, hovered);
  const id = data.ids[hovered];
  return (
    <MapCanvas
      {...shown}
      colours={colours.colours}
      isColouring={colours.isLoading}
      labels={areLabelsShown && description !== undefined ? description.labels : NO_LABELS}
      densities={description?.densities}
      hidden={useStore(hiddenEntriesOf(collection.id))}
      selection={useStore(selectionStore)}
      onSelection={selectionStore.set}
      neighbors={neighbors}
      // The point may have been deleted.
      hovered={id === undefined ? -1 : hovered}
      onHover={setHovered}
      name={collection.id}
      spoken={id && spokenOf(id, colourPath, colours.values?.[hovered])}
      card={
        id !== undefined && (
          <HoverCard
            collection={collection}
            id={id}
            colourPath={colourPath}
            value={colours.values?.[hovered]}
            entry={colours.colours?.entries[hovered]}
            neighborCount={neighbors.length}
          />
        )
      }
    />
  );
}

const NO_LABELS: readonly AreaLabel[] = [];

const NEIGHBORS_SHOWN = 8;
/** Delays the request, so that a pointer that passes over points sends none. */
const HOVER_DELAY_MS = 100;

/** Indexes of points; neighbours outside the sample are left out. */
function useNeighbors(
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

function spokenOf(id: string, path: string, value: Json | undefined): string {
  return value === undefined ? id : `${id}, ${path} ${formatValue(value)}`;
}
