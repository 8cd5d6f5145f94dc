// The aliases and their collections.

import type { AliasRecord } from '@sagitta/client';
import { ArrowRight } from 'lucide-react';
import { Link } from 'wouter';
import { useApi } from '../../api/queries.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import { collectionPath } from '../routes.js';
import styles from './overview.module.css';

export function AliasPanel() {
  const {
    data: aliases,
    error,
    refetch,
  } = useApi(
    ['aliases'],
    async (client, signal) => {
      const found: AliasRecord[] = [];
      for await (const alias of client.aliases.all({ limit: 1_000 }, { signal })) found.push(alias);
      return found;
    },
    { refetchInterval: 10_000 },
  );
  return (
    <Panel title="Aliases">
      {aliases === undefined && error === null && <Loading />}
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {aliases?.length === 0 && <p>No aliases yet.</p>}
      {aliases !== undefined && aliases.length > 0 && <AliasList aliases={aliases} />}
    </Panel>
  );
}

function AliasList({ aliases }: { readonly aliases: readonly AliasRecord[] }) {
  return (
    <ul className={styles.aliases}>
      {aliases.map(({ name, collection }) => (
        <li key={name} className={styles.alias}>
          <span title={name}>{name}</span>
          <ArrowRight size={14} role="img" aria-label="points to" />
          <Link href={collectionPath(collection)} title={collection}>
            {collection}
          </Link>
        </li>
      ))}
    </ul>
  );
}
