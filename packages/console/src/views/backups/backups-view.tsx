// Starts backups, lists the existing ones, and shows how to restore each.

import type { BackupRecord } from '@sagitta/client';
import { useEffect, useState } from 'react';
import { queryClient, useApi } from '../../api/queries.js';
import { session } from '../../api/session.js';
import { createStore, useStore } from '../../api/store.js';
import { Button } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { DataTable, Truncated } from '../../ui/data-table.js';
import { TextField } from '../../ui/field.js';
import { formatBytes, formatCount, formatDuration, formatTime } from '../../ui/format.js';
import { PageLayout, Panel } from '../../ui/panel.js';
import { Empty, ErrorMessage, Loading } from '../../ui/states.js';
import { AdminOnly } from '../admin-only.js';
import styles from './backups.module.css';
import { restoreCommand } from './restore-command.js';

type BackupRun =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly startedAtMs: number }
  | { readonly kind: 'done'; readonly backup: BackupRecord }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Outside React, so that a running backup continues while other views are shown. */
const backupRun = createStore<BackupRun>({ kind: 'idle' });

/** If `name` is empty, the server chooses a name. */
async function startBackup(name: string): Promise<void> {
  if (backupRun.get().kind === 'running') return;
  backupRun.set({ kind: 'running', startedAtMs: Date.now() });
  try {
    const request = name === '' ? {} : { name };
    backupRun.set({ kind: 'done', backup: await session.get().client.backups.create(request) });
  } catch (error) {
    backupRun.set({ kind: 'failed', error });
  }
  void queryClient.invalidateQueries({ queryKey: ['backups'] });
}

const BACKUP_COMMAND = 'sagitta backup --to ./backup';
const nameStore = createStore('');

export default function BackupsView() {
  return (
    <AdminOnly title="Backups">
      {({ backups_configured: isConfigured }) => (
        <PageLayout title="Backups" subtitle="Consistent online snapshots of the data directory.">
          {isConfigured ? <Backups /> : <NotConfigured />}
        </PageLayout>
      )}
    </AdminOnly>
  );
}

function Backups() {
  const {
    data: backups,
    error,
    refetch,
  } = useApi(['backups'], (client, signal) => client.backups.list({ signal }), {
    refetchInterval: ({ state }) => (state.error === null ? 10_000 : false),
  });
  return (
    <>
      <StartPanel />
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {backups === undefined && error === null && <Loading label="Loading the backups" />}
      {backups?.length === 0 && (
        <Panel>
          <Empty title="No backups yet" />
        </Panel>
      )}
      {backups !== undefined && backups.length > 0 && <BackupTable backups={backups} />}
    </>
  );
}

function NotConfigured() {
  return (
    <Panel>
      <Empty title="No backup directory is configured">
        <p>
          To back up from here, set <code>SAGITTA_BACKUP_DIR</code> to a directory on the server’s
          host and restart the server. Without it, run this command on the host:
        </p>
        <span className={styles.command}>
          <code>{BACKUP_COMMAND}</code>
          <CopyButton text={BACKUP_COMMAND} label="Copy the command" />
        </span>
      </Empty>
    </Panel>
  );
}

function StartPanel() {
  const run = useStore(backupRun);
  const name = useStore(nameStore);
  return (
    <Panel title="New backup">
      <form
        className={styles.start}
        onSubmit={(event) => {
          event.preventDefault();
          void startBackup(name.trim());
        }}
      >
        <TextField
          label="Name"
          hint="The name of its folder. Leave empty to let the server choose."
          value={name}
          onChange={nameStore.set}
        />
        <Button type="submit" kind="primary" isBusy={run.kind === 'running'}>
          {run.kind === 'running' ? 'Backing up' : 'Start'}
        </Button>
      </form>
      <p role="status" className={styles.note}>
        {run.kind === 'running' && <Elapsed sinceMs={run.startedAtMs} />}
        {run.kind === 'done' &&
          `Backup ${run.backup.name} completed: ${formatBytes(run.backup.byte_length)}.`}
      </p>
      {run.kind === 'failed' && <ErrorMessage error={run.error} />}
    </Panel>
  );
}

/** The server does not report progress; the elapsed time shows that the backup is running. */
function Elapsed({ sinceMs }: { readonly sinceMs: number }) {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1000));
  return (
    <>
      Running for <span aria-hidden>{formatDuration(seconds)}</span>
      <span className="visually-hidden">a while</span>. You can leave this page.
    </>
  );
}

const COLUMNS = [
  { label: 'Backup', cell: ({ name }: BackupRecord) => <Truncated text={name} /> },
  {
    label: 'As of',
    cell: ({ created_at: time }: BackupRecord) => (
      <time dateTime={time} className={styles.time}>
        {formatTime(time)}
      </time>
    ),
  },
  {
    label: 'Collections',
    kind: 'number' as const,
    cell: ({ collections }: BackupRecord) => formatCount(collections),
  },
  {
    label: 'Size',
    kind: 'number' as const,
    cell: ({ byte_length: byteCount }: BackupRecord) => formatBytes(byteCount),
  },
  {
    label: 'Restore on the server’s host',
    cell: ({ name }: BackupRecord) => (
      <span className={styles.command}>
        <code>{restoreCommand(name)}</code>
        <CopyButton text={restoreCommand(name)} label={`Copy the command that restores ${name}`} />
      </span>
    ),
  },
];

function BackupTable({ backups }: { readonly backups: readonly BackupRecord[] }) {
  const newestFirst = [...backups].sort((a, b) => b.created_at.localeCompare(a.created_at));
  return (
    <DataTable label="Backups" columns={COLUMNS} rows={newestFirst} keyOf={({ name }) => name} />
  );
}
