// The groups and their actions: order them, choose the member to keep, delete the others, export all.

import type { CollectionRecord } from '@sagitta/client';
import { Trash2 } from 'lucide-react';
import { useMemo, useState } from 'react';
import { fetchMetadata } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { SelectField } from '../../ui/field.js';
import { formatCount } from '../../ui/format.js';
import { ErrorMessage } from '../../ui/states.js';
import { DeleteDialog } from '../selection/delete-dialog.js';
import { groupOrderOf, searchStateOf } from './duplicate-search.js';
import styles from './duplicates.module.css';
import { groupsAsCsv, groupsAsNdjson } from './export-groups.js';
import { ExportMenu } from './export-menu.js';
import { GroupList } from './group-list.js';
import { KeepRuleFields } from './keep-rule-fields.js';
import { idsToDelete } from './keep-rules.js';
import type { GroupOrder } from './similar-pairs.js';
import { type Found, useKeeping } from './use-keeping.js';

interface GroupActionsProps {
  readonly collection: CollectionRecord;
  readonly found: Found;
}

const ORDERS = [
  { value: 'found', label: 'As found' },
  { value: 'largest', label: 'Largest first' },
] as const satisfies readonly { value: GroupOrder; label: string }[];

export function GroupActions({ collection, found }: GroupActionsProps) {
  const { client } = useStore(session);
  const { groups, result, version } = found;
  const { keptOf, isReady, error } = useKeeping(collection, found);
  const orderStore = groupOrderOf(collection.id);
  const isRunning = result.ending === undefined;
  const [deleting, setDeleting] = useState<readonly string[]>();
  const others = useMemo(() => idsToDelete(groups, keptOf), [groups, keptOf]);
  const removeFromGroups = (ids: readonly string[]) => {
    result.pairs.remove(ids);
    const state = { kind: 'done', result, version: version + 1, progress: undefined } as const;
    searchStateOf(collection.id).set(state);
  };
  return (
    <>
      <div className={styles.toolbar}>
        <div className={styles.rule}>
          <SelectField
            label="Order"
            value={useStore(orderStore)}
            options={ORDERS}
            onChange={orderStore.set}
          />
          <KeepRuleFields collection={collection} />
        </div>
        <div className={styles.toolbarActions}>
          <ExportMenu
            name={`${collection.id}-duplicates`}
            labels={{ ndjson: 'NDJSON, one line per group', csv: 'CSV, one line per vector' }}
            disabled={!isReady || isRunning}
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
            // A running search would bring them back.
            disabled={others.length === 0 || isRunning}
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
