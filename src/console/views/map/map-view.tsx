// Map

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';

export default function MapView({ collection }: CollectionViewProps) {
  return <Page title="Map">{collection.id}</Page>;
}
