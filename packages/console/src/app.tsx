// The routes of the console. The code of a view is loaded when the view is first shown.

import { lazy, Suspense } from 'react';
import { Route, Switch } from 'wouter';
import { Shell } from './shell/shell.js';
import { ViewBoundary } from './shell/view-boundary.js';
import { Empty, Loading } from './ui/states.js';

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
        <Suspense fallback={<Loading />}>
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
              <Empty title="Page not found">
                <a href="#/">Go to the overview</a>
              </Empty>
            </Route>
          </Switch>
        </Suspense>
      </ViewBoundary>
    </Shell>
  );
}
