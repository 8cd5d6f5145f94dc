// Duplicates

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection/collection-views.js';

export default function DuplicatesView({ collection }: CollectionViewProps) {
  return <Page title="Duplicates">{collection.id}</Page>;
}
