// The join of a collection with another one: the nearest vectors there, for every vector of this one.

import { denseVectors } from '@sagitta/client';
import { PageLayout } from '../../ui/panel.js';
import { Empty } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { JoinPanel } from './join-panel.js';

export default function JoinView({ collection }: CollectionViewProps) {
  return (
    <PageLayout
      title="Join"
      subtitle="The nearest vectors in another collection, for every vector of this one."
    >
      {denseVectors(collection).length === 0 ? (
        <Empty title="This collection has no vectors that can be joined">
          <p>It only has sparse vectors or several vectors per record.</p>
        </Empty>
      ) : (
        <JoinPanel collection={collection} />
      )}
    </PageLayout>
  );
}
