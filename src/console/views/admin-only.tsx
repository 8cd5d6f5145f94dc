// Shows a view only to callers with the scope `admin` for all collections, and says to others what is
// missing.

import type { ReactNode } from 'react';
import type { PrincipalRecord } from '../../client/client.js';
import { usePrincipal } from '../api/queries.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loading, Problem } from '../ui/states.js';

interface AdminOnlyProps {
  readonly children: (principal: PrincipalRecord) => ReactNode;
}

export function AdminOnly({ children }: AdminOnlyProps) {
  const { data: principal, error, refetch } = usePrincipal();
  if (principal === undefined) {
    return error === null ? <Loading /> : <Problem error={error} onRetry={() => void refetch()} />;
  }
  const isAdmin = principal.grants.some(
    ({ scope, collections }) => scope === 'admin' && collections === '*',
  );
  if (isAdmin) return children(principal);
  const scopes = principal.grants.map(({ scope, collections }) =>
    collections === '*' ? scope : `${scope} on ${collections}`,
  );
  return (
    <Panel>
      <Empty title="This needs the scope admin for all collections">
        <p>
          You are {principal.id}, with{' '}
          {scopes.length === 0 ? 'no scope' : `the scopes ${scopes.join(', ')}`}. Sign in with
          another credential, or ask whoever made yours.
        </p>
      </Empty>
    </Panel>
  );
}
