// The results of a join: a summary, a table and an export.

import type { Client, CollectionRecord } from '@sagitta/client';
import { fetchMetadata } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import styles from '../duplicates/duplicates.module.css';
import { ExportMenu } from '../duplicates/export-menu.js';
import {
  type JoinedMetadata,
  type JoinMatches,
  matchesAsCsv,
  matchesAsNdjson,
} from './join-matches.js';
import { joinStateOf } from './join-search.js';
import { JoinTable } from './join-table.js';

const ENDINGS = {
  complete: '',
  stopped: ' The join was stopped: some vectors are missing.',
  full: ' The join reached the limit of matches: choose fewer matches per vector or a higher score.',
};

export function JoinResults({ collection }: { readonly collection: CollectionRecord }) {
  const { client } = useStore(session);
  const state = useStore(joinStateOf(collection.id));
  if (state.kind === 'failed') return <ErrorMessage error={state.error} />;
  if (state.kind !== 'done') return null;
  const { request, found, ending } = state;
  const collections = { left: collection.id, right: request.with! };
  const without =
    found.unmatchedCount > 0 ? ` ${formatCount(found.unmatchedCount)} have no match.` : '';
  const compared = `${pluralize(found.rowCount, 'vector')} looked up in ${collections.right}.${without}${ENDINGS[ending]}`;
  if (found.matches.length === 0) {
    return (
      <div role="status">
        <Empty title="No matches">
          <p>{compared}</p>
        </Empty>
      </div>
    );
  }
  return (
    <>
      <div className={styles.toolbar}>
        <div className={styles.summary} role="status">
          <h2>{pluralize(found.matches.length, 'match', 'matches')}</h2>
          <p>{compared}</p>
        </div>
        <div className={styles.toolbarActions}>
          <ExportMenu
            name={`${collections.left}-${collections.right}`}
            labels={{ ndjson: 'NDJSON', csv: 'CSV' }}
            write={async (format) => {
              const metadata = await metadataOf(client, collections, found);
              return (format === 'csv' ? matchesAsCsv : matchesAsNdjson)(found.matches, metadata);
            }}
          />
        </div>
      </div>
      <JoinTable collections={collections} matches={found.matches} />
    </>
  );
}

async function metadataOf(
  client: Client,
  { left, right }: { readonly left: string; readonly right: string },
  { matches }: JoinMatches,
): Promise<JoinedMetadata> {
  const ids = new Set(matches.map(({ id }) => id));
  const matchIds = new Set(matches.map(({ matchId }) => matchId));
  return {
    left: await fetchMetadata(client.collection(left), [...ids]),
    right: await fetchMetadata(client.collection(right), [...matchIds]),
  };
}
