// The aliases and their collections: create, repoint and delete.

import type { AliasRecord } from '@sagitta/client';
import { Pencil, Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { useApi } from '../../api/queries.js';
import { Button, IconButton } from '../../ui/button.js';
import { type DataColumn, DataTable, Truncated } from '../../ui/data-table.js';
import { formatTime } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import { collectionPath } from '../routes.js';
import { AliasDialog, DeleteAlias } from './alias-dialogs.js';
import styles from './overview.module.css';

/** The alias to change or to delete; `new` for one to create. */
type OpenDialog =
  | { readonly kind: 'new' }
  | { readonly kind: 'change' | 'delete'; readonly alias: AliasRecord };

export function AliasPanel() {
  const { data: aliases, error, refetch } = useAliases();
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  return (
    <Panel
      title="Aliases"
      actions={
        <Button icon={Plus} onClick={() => setDialog({ kind: 'new' })}>
          New alias
        </Button>
      }
    >
      {aliases === undefined && error === null && <Loading label="Loading the aliases" />}
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {aliases?.length === 0 && (
        <p className={styles.note}>
          No aliases yet. An alias is another name of a collection, which you can point to a new
          version without changing clients.
        </p>
      )}
      {aliases !== undefined && aliases.length > 0 && (
        <DataTable
          label="Aliases"
          columns={columnsOf(setDialog)}
          rows={aliases}
          keyOf={({ name }) => name}
        />
      )}
      <AliasDialog
        alias={dialog?.kind === 'change' ? dialog.alias : undefined}
        taken={aliases ?? []}
        isOpen={dialog?.kind === 'new' || dialog?.kind === 'change'}
        onClose={close}
      />
      <DeleteAlias alias={dialog?.kind === 'delete' ? dialog.alias : undefined} onClose={close} />
    </Panel>
  );
}

function useAliases() {
  return useApi(
    ['aliases'],
    async (client, signal) => {
      const found: AliasRecord[] = [];
      for await (const alias of client.aliases.all({ limit: 1_000 }, { signal })) found.push(alias);
      return found;
    },
    { refetchInterval: 10_000 },
  );
}

function columnsOf(open: (dialog: OpenDialog) => void): readonly DataColumn<AliasRecord>[] {
  return [
    { label: 'Alias', cell: ({ name }) => <Truncated text={name} /> },
    {
      label: 'Collection',
      cell: ({ collection }) => (
        <Link href={collectionPath(collection)} className={styles.idLink} title={collection}>
          {collection}
        </Link>
      ),
    },
    { label: 'Changed', cell: ({ updated_at: time }) => formatTime(time) },
    {
      label: 'Actions',
      isLabelHidden: true,
      kind: 'actions',
      cell: (alias) => (
        <>
          <IconButton
            icon={Pencil}
            label={`Point ${alias.name} to another collection`}
            onClick={() => open({ kind: 'change', alias })}
          />
          <IconButton
            icon={Trash2}
            label={`Delete the alias ${alias.name}`}
            onClick={() => open({ kind: 'delete', alias })}
          />
        </>
      ),
    },
  ];
}
