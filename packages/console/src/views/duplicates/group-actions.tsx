// The groups and their actions: choose the member to keep, delete the others, export all.

import type { CollectionRecord } from '@sagitta/client';
import { Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { fetchMetadata } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { formatCount } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { DeleteDialog } from '../selection/delete-dialog.js';
import { searchStateOf } from './duplicate-search.js';
import styles from './duplicates.module.css';
import { groupsAsCsv, groupsAsNdjson } from './export-groups.js';
import { ExportMenu } from './export-menu.js';
import { GroupList } from './group-list.js';
import { KeepRuleFields } from './keep-rule-fields.js';
import { idsToDelete } from './keep-rules.js';
import { type Found, useKeeping } from './use-keeping.js';

interface GroupActionsProps {
  readonly collection: CollectionRecord;
  readonly found: Found;
}

export function GroupActions({ collection, found }: GroupActionsProps) {
  const { client } = useStore(session);
  const { groups, result, version } = found;
  const { keptOf, isReady, error } = useKeeping(collection, found);
  const [deleting, setDeleting] = useState<readonly string[]>();
  const others = useMemo(() => idsToDelete(groups, keptOf), [groups, keptOf]);
  const removeFromGroups = (ids: readonly string[]) => {
    result.pairs.remove(ids);
    searchStateOf(collection.id).set({ kind: 'done', result, version: version + 1 });
  };
  return (
    <>
      <div className={styles.toolbar}>
        <KeepRuleFields collection={collection} />
        <div className={styles.toolbarActions}>
          <ExportMenu
            name={`${collection.id}-duplicates`}
            labels={{ ndjson: 'NDJSON, one line per group', csv: 'CSV, one line per vector' }}
            disabled={!isReady}
            write={async (format) => {
              const ids = groups.flatMap(({ members }) => members.map(({ id }) => id));
              const metadata = await fetchMetadata(client.collection(collection.id), ids);
              const exported = groups.map((group) => ({ group, kept: keptOf(group) ?? null }));
              return (format === 'csv' ? groupsAsCsv : groupsAsNdjson)(exported, metadata);
            }}
          />
          <Button
            kind="danger"
            icon={Trash2}
            disabled={others.length === 0}
            onClick={() => setDeleting(others)}
          >
            Delete {formatCount(others.length)} {others.length === 1 ? 'other' : 'others'}…
          </Button>
        </div>
      </div>
      {error !== null && <ErrorMessage error={error} />}
      <GroupList collection={collection} groups={groups} keptOf={keptOf} />
      <DeleteDialog
        collection={collection}
        ids={deleting ?? []}
        note="One vector of each group is kept, and all vectors of groups marked “Keep all”."
        isOpen={deleting !== undefined}
        onClose={() => setDeleting(undefined)}
        onDeleted={removeFromGroups}
      />
    </>
  );
}
