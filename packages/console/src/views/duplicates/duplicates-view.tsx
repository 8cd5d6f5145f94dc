// Duplicates: groups of similar vectors in a collection.

import { denseVectors } from '@sagitta/client';
import { Redirect, useLocation } from 'wouter';
import { PageLayout } from '../../ui/panel.js';
import { Empty } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { collectionPath } from '../routes.js';
import { DuplicateGroups } from './duplicate-groups.js';
import { SearchForm } from './search-form.js';

export default function DuplicatesView({ collection }: CollectionViewProps) {
  const [location] = useLocation();
  // The address of joins when both were one view; bookmarks have it.
  if (location === `${collectionPath(collection.id, 'duplicates')}/join`) {
    return <Redirect to={collectionPath(collection.id, 'join')} replace />;
  }
  return (
    <PageLayout
      title="Duplicates"
      subtitle="Vectors that are similar to each other, directly or through a chain of others."
    >
      {denseVectors(collection).length === 0 ? (
        <Empty title="This collection has no vectors that can be compared">
          <p>It only has sparse vectors or several vectors per record.</p>
        </Empty>
      ) : (
        <>
          <SearchForm collection={collection} />
          <DuplicateGroups collection={collection} />
        </>
      )}
    </PageLayout>
  );
}
