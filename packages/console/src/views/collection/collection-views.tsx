// The views of one collection and their tabs. The code of a view is loaded when the view is first shown.

import { SagittaClientError } from '@sagitta/client';
import { lazy, Suspense } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { useCollection } from '../../api/queries.js';
import { PageContent } from '../../ui/panel.js';
import { ScrollStrip } from '../../ui/scroll-strip.js';
import { Skeleton, type SkeletonShape } from '../../ui/skeleton.js';
import { ErrorMessage } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import { NotFound } from '../not-found.js';
import { COLLECTION_VIEWS, type CollectionView, collectionPath } from '../routes.js';
import styles from './collection-views.module.css';

const VIEWS = {
  schema: lazy(() => import('./schema-view.js')),
  browse: lazy(() => import('../browse/browse-view.js')),
  query: lazy(() => import('../query/query-view.js')),
  map: lazy(() => import('../map/map-view.js')),
  duplicates: lazy(() => import('../duplicates/duplicates-view.js')),
  join: lazy(() => import('../join/join-view.js')),
};

const SHAPES: Readonly<Record<CollectionView, SkeletonShape>> = {
  schema: 'page',
  browse: 'table',
  query: 'split',
  map: 'canvas',
  duplicates: 'page',
  join: 'page',
};

export default function CollectionViews({ id }: { readonly id: string }) {
  const { data: collection, error, refetch } = useCollection(id);
  const [location] = useLocation();
  if (isNotFound(error)) return <MissingCollection id={id} />;
  const view = COLLECTION_VIEWS.find(({ name }) => isAt(location, collectionPath(id, name)));
  const shape = SHAPES[view?.name ?? 'schema'];
  return (
    <div className={styles.frame}>
      <Tabs id={id} />
      <div className={styles.view}>
        {collection === undefined && error === null && <Skeleton shape={shape} />}
        {collection === undefined && error !== null && (
          <PageContent>
            <ErrorMessage error={error} onRetry={refetch} />
          </PageContent>
        )}
        {collection !== undefined && (
          <Suspense fallback={<Skeleton shape={shape} />}>
            <Views collection={collection} />
          </Suspense>
        )}
      </div>
    </div>
  );
}

function isNotFound(error: unknown): boolean {
  return error instanceof SagittaClientError && error.code === 'collection_not_found';
}

function MissingCollection({ id }: { readonly id: string }) {
  return (
    <NotFound title={id} what="Collection not found">
      No collection or alias has this id. It may have been renamed or deleted, or your credential
      may not include it.
    </NotFound>
  );
}

function isAt(location: string, path: string): boolean {
  return location === path || location.startsWith(`${path}/`);
}

function Tabs({ id }: { readonly id: string }) {
  const [location] = useLocation();
  return (
    <nav className={styles.tabs} aria-label={`Views of ${id}`}>
      <span className={styles.name} title={id}>
        {id}
      </span>
      <ScrollStrip className={styles.strip} current={location}>
        {COLLECTION_VIEWS.map(({ name, label }) => {
          const path = collectionPath(id, name);
          return (
            <Link
              key={name}
              href={path}
              className={styles.tab}
              aria-current={isAt(location, path) ? 'page' : undefined}
            >
              {label}
            </Link>
          );
        })}
      </ScrollStrip>
    </nav>
  );
}

function Views({ collection }: CollectionViewProps) {
  const base = `/collections/${encodeURIComponent(collection.id)}`;
  return (
    <Switch>
      {(Object.keys(VIEWS) as CollectionView[]).map((name) => {
        const View = VIEWS[name];
        return (
          <Route key={name} path={`${base}/${name}/*?`}>
            <View collection={collection} />
          </Route>
        );
      })}
      <Route>
        <Redirect to={collectionPath(collection.id)} replace />
      </Route>
    </Switch>
  );
}
