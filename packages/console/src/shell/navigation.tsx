// The navigation: the views of the server, and the collections.

import { Archive, Database, Gauge, KeyRound, ScrollText, Upload } from 'lucide-react';
import { Link, useLocation } from 'wouter';
import { useCollections } from '../api/queries.js';
import { formatCompact } from '../ui/format.js';
import { collectionPath, SERVICE_VIEWS } from '../views/routes.js';
import styles from './navigation.module.css';

const ICONS = {
  '/': Gauge,
  '/import': Upload,
  '/keys': KeyRound,
  '/audit': ScrollText,
  '/backups': Archive,
};

export function Navigation() {
  const [location] = useLocation();
  const { data: collections = [] } = useCollections();
  return (
    <nav className={styles.navigation} aria-label="Main">
      <ul>
        {SERVICE_VIEWS.map(({ path, label }) => {
          const Icon = ICONS[path];
          return (
            <li key={path}>
              <Link href={path} className={styles.link} aria-current={current(location === path)}>
                <Icon size={16} aria-hidden />
                {label}
              </Link>
            </li>
          );
        })}
      </ul>
      <h2 className={styles.heading}>Collections</h2>
      <ul>
        {collections.map(({ id, vector_count: count }) => {
          const isHere = location.startsWith(`/collections/${encodeURIComponent(id)}/`);
          return (
            <li key={id}>
              <Link
                href={collectionPath(id)}
                className={styles.link}
                aria-current={current(isHere)}
              >
                <Database size={16} aria-hidden />
                <span className={styles.name} title={id}>
                  {id}
                </span>
                <span className={styles.count}>{formatCompact(count)}</span>
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function current(isHere: boolean): 'page' | undefined {
  return isHere ? 'page' : undefined;
}
