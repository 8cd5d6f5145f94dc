// Query

import { Page } from '../../ui/panel.js';
import type { CollectionViewProps } from '../collection-view-props.js';

export default function QueryView({ collection }: CollectionViewProps) {
  return <Page title="Query">{collection.id}</Page>;
}
