// The results of a join: a summary, a table and an export.

import type { CollectionRecord } from '@sagitta/client';
import { Download } from 'lucide-react';
import { useState } from 'react';
import { fetchMetadata } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { formatCount, pluralize } from '../../ui/format.js';
import { MenuButton } from '../../ui/menu-button.js';
import { saveFile } from '../../ui/save-file.js';
import { Empty, ErrorMessage } from '../../ui/states.js';
import styles from './duplicates.module.css';
import { type JoinMatches, matchesAsCsv, matchesAsNdjson } from './join-matches.js';
import { joinStateOf } from './join-search.js';
import { JoinTable } from './join-table.js';

const ENDINGS = {
  complete: '',
  stopped: ' The join was stopped: some vectors are missing.',
  full: ' The join reached the limit of matches: choose fewer matches per vector or a higher score.',
};

export function JoinResults({ collection }: { readonly collection: CollectionRecord }) {
  const state = useStore(joinStateOf(collection.id));
  if (state.kind === 'failed') return <ErrorMessage error={state.error} />;
  if (state.kind !== 'done') return null;
  const { request, found, ending } = state;
  const collections = { left: collection.id, right: request.with! };
  const without =
    found.unmatchedCount > 0 ? ` ${formatCount(found.unmatchedCount)} have no match.` : '';
  const compared = `${pluralize(found.rowCount, 'vector')} searched for in ${collections.right}.${without}${ENDINGS[ending]}`;
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
        <ExportMenu collections={collections} found={found} />
      </div>
      <JoinTable collections={collections} matches={found.matches} />
    </>
  );
}

const FORMATS = {
  ndjson: { mediaType: 'application/x-ndjson', write: matchesAsNdjson },
  csv: { mediaType: 'text/csv', write: matchesAsCsv },
};

interface ExportMenuProps {
  readonly collections: { readonly left: string; readonly right: string };
  readonly found: JoinMatches;
}

function ExportMenu({ collections: { left, right }, found }: ExportMenuProps) {
  const { client } = useStore(session);
  const [error, setError] = useState<unknown>();
  const exportAs = async (format: keyof typeof FORMATS) => {
    setError(undefined);
    const { mediaType, write } = FORMATS[format];
    const ids = new Set(found.matches.map(({ id }) => id));
    const matchIds = new Set(found.matches.map(({ matchId }) => matchId));
    try {
      const metadata = {
        left: await fetchMetadata(client.collection(left), [...ids]),
        right: await fetchMetadata(client.collection(right), [...matchIds]),
      };
      saveFile(`${left}-${right}.${format}`, mediaType, write(found.matches, metadata));
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <div className={styles.toolbarActions}>
      <MenuButton
        icon={Download}
        actions={[
          { label: 'NDJSON', onSelect: () => exportAs('ndjson') },
          { label: 'CSV', onSelect: () => exportAs('csv') },
        ]}
      >
        Export
      </MenuButton>
      {error !== undefined && <ErrorMessage error={error} />}
    </div>
  );
}
