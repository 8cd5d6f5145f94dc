// The views of one collection and their tabs. The code of a view is loaded when the view is first shown.

import { lazy, Suspense } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { useCollection } from '../../api/queries.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
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

export default function CollectionViews({ id }: { readonly id: string }) {
  const { data: collection, error, refetch } = useCollection(id);
  return (
    <div className={styles.frame}>
      <Tabs id={id} />
      <div className={styles.view}>
        {collection === undefined && error === null && <Loading />}
        {collection === undefined && error !== null && (
          <ErrorMessage error={error} onRetry={refetch} />
        )}
        {collection !== undefined && <Views collection={collection} />}
      </div>
    </div>
  );
}

function Tabs({ id }: { readonly id: string }) {
  const [location] = useLocation();
  return (
    <nav className={styles.tabs} aria-label={`Views of ${id}`}>
      <span className={styles.name} title={id}>
        {id}
      </span>
      {COLLECTION_VIEWS.map(({ name, label }) => {
        const path = collectionPath(id, name);
        const isHere = location === path || location.startsWith(`${path}/`);
        return (
          <Link
            key={name}
            href={path}
            className={styles.tab}
            aria-current={isHere ? 'page' : undefined}
          >
            {label}
          </Link>
        );
      })}
    </nav>
  );
}

function Views({ collection }: CollectionViewProps) {
  const base = `/collections/${encodeURIComponent(collection.id)}`;
  return (
    <Suspense fallback={<Loading />}>
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
    </Suspense>
  );
}
