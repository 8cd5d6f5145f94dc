// Browse

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';

export default function BrowseView({ collection }: CollectionViewProps) {
  return <Page title="Browse">{collection.id}</Page>;
}
