// Shows a view only to callers with the scope `admin` for all collections, and tells others what is
// missing.

import type { PrincipalRecord } from '@sagitta/client';
import type { ReactNode } from 'react';
import { usePrincipal } from '../api/queries.js';
import { PageLayout, Panel } from '../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../ui/states.js';

interface AdminOnlyProps {
  /** The title of the page that replaces the view. */
  readonly title: string;
  readonly children: (principal: PrincipalRecord) => ReactNode;
}

export function AdminOnly({ title, children }: AdminOnlyProps) {
  const { data: principal, error, refetch } = usePrincipal();
  if (principal !== undefined && isAdmin(principal)) return children(principal);
  return (
    <PageLayout title={title}>
      {principal === undefined && error === null && <Loading />}
      {principal === undefined && error !== null && (
        <ErrorMessage error={error} onRetry={() => void refetch()} />
      )}
      {principal !== undefined && <MissingScope principal={principal} />}
    </PageLayout>
  );
}

function isAdmin({ grants }: PrincipalRecord): boolean {
  return grants.some(({ scope, collections }) => scope === 'admin' && collections === '*');
}

function MissingScope({ principal: { id, grants } }: { readonly principal: PrincipalRecord }) {
  const scopes = grants.map(({ scope, collections }) =>
    collections === '*' ? scope : `${scope} on ${collections}`,
  );
  return (
    <Panel>
      <Empty title="This page requires the admin scope for all collections">
        <p>
          You are signed in as {id}, with{' '}
          {scopes.length === 0 ? 'no scope' : `the scopes ${scopes.join(', ')}`}. Sign in with
          another credential, or ask an administrator.
        </p>
      </Empty>
    </Panel>
  );
}
