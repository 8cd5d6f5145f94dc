// Duplicates and joins: groups of similar vectors in this collection, or the nearest vectors in another
// one. The address says which of the two is shown.

import { denseVectors } from '@sagitta/client';
import { Link, useLocation } from 'wouter';
import { PageLayout } from '../../ui/panel.js';
import { Empty } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { collectionPath } from '../routes.js';
import { DuplicateGroups } from './duplicate-groups.js';
import styles from './duplicates.module.css';
import { JoinPanel } from './join-panel.js';
import { SearchForm } from './search-form.js';

const MODES = [
  { suffix: '', label: 'Duplicates' },
  { suffix: '/join', label: 'Join with another collection' },
] as const;

export default function DuplicatesView({ collection }: CollectionViewProps) {
  const [location] = useLocation();
  const path = collectionPath(collection.id, 'duplicates');
  const isJoin = location === `${path}/join`;
  const actions = (
    <nav className={styles.modes} aria-label="Kinds of joins">
      {MODES.map(({ suffix, label }) => (
        <Link
          key={suffix}
          href={path + suffix}
          className={styles.mode}
          aria-current={isJoin === (suffix !== '') ? 'page' : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
  return (
    <PageLayout
      title={isJoin ? 'Join' : 'Duplicates'}
      subtitle={
        isJoin
          ? 'The nearest vectors in another collection, for every vector of this one.'
          : 'Vectors that are similar to each other, directly or through a chain of others.'
      }
      actions={actions}
    >
      {denseVectors(collection).length === 0 ? (
        <Empty title="This collection has no vectors that can be joined">
          <p>It only has sparse vectors or several vectors per record.</p>
        </Empty>
      ) : isJoin ? (
        <JoinPanel collection={collection} />
      ) : (
        <>
          <SearchForm collection={collection} />
          <DuplicateGroups collection={collection} />
        </>
      )}
    </PageLayout>
  );
}
