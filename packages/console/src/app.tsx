// The routes of the console. The code of a view is loaded when the view is first shown.

import { lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { Shell } from './shell/shell.js';
import { ViewBoundary } from './shell/view-boundary.js';
import { Skeleton } from './ui/skeleton.js';
import { NotFound } from './views/not-found.js';

const OverviewView = lazy(() => import('./views/overview/overview-view.js'));
const CollectionViews = lazy(() => import('./views/collection/collection-views.js'));
const ImportView = lazy(() => import('./views/import/import-view.js'));
const KeysView = lazy(() => import('./views/keys/keys-view.js'));
const AuditView = lazy(() => import('./views/audit/audit-view.js'));
const BackupsView = lazy(() => import('./views/backups/backups-view.js'));

export function App() {
  return (
    <Shell>
      <ViewBoundary>
        <Suspense fallback={<Skeleton shape="page" />}>
          <Switch>
            <Route path="/" component={OverviewView} />
            <Route path="/import" component={ImportView} />
            <Route path="/keys" component={KeysView} />
            <Route path="/audit" component={AuditView} />
            <Route path="/backups" component={BackupsView} />
            <Route path="/collections/:id/*?">
              {({ id }) => <CollectionViews key={id} id={decodeURIComponent(id)} />}
            </Route>
            <Route>
              <NotFound title="Page not found" what="There is no page at this address">
                The link may be incomplete, or from another version of the console.
              </NotFound>
            </Route>
          </Switch>
        </Suspense>
      </ViewBoundary>
    </Shell>
  );
}
