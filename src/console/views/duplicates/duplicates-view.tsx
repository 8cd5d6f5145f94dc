// Duplicates

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';

export default function DuplicatesView({ collection }: CollectionViewProps) {
  return <Page title="Duplicates">{collection.id}</Page>;
}
