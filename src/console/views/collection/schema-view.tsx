// Schema

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';

export default function SchemaView({ collection }: CollectionViewProps) {
  return <Page title="Schema">{collection.id}</Page>;
}
