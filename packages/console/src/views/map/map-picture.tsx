// The map canvas with the card of the hovered point and lines to its neighbours.

import type { CollectionRecord } from '@sagitta/client';
import { useState } from 'react';
import type { Json } from '../../../../../src/common/types.js';
import { useStore } from '../../api/store.js';
import { formatValue } from '../vectors/preview.js';
import { HoverCard } from './hover-card.js';
import { MapCanvas } from './map-canvas.js';
import { hiddenEntriesOf, type MapData, mapSelectionOf } from './map-state.js';
import type { Tool } from './use-map-gestures.js';
import { useNeighbors } from './use-neighbors.js';
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
  readonly tool: Tool;
  readonly fitKey: string;
}

export function MapPicture(props: MapPictureProps) {
  const { collection, data, colours, colourPath, ...shown } = props;
  const selectionStore = mapSelectionOf(collection.id);
  const [hovered, setHovered] = useState(-1);
  const neighbors = useNeighbors(collection, data, hovered);
  const id = data.ids[hovered];
  return (
    <MapCanvas
      {...shown}
      colours={colours.colours}
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

function spokenOf(id: string, path: string, value: Json | undefined): string {
  return value === undefined ? id : `${id}, ${path} ${formatValue(value)}`;
}
