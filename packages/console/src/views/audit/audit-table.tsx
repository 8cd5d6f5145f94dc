// The table of audit events.

import type { AuditEvent } from '@sagitta/client';
import { type DataColumn, DataTable, Truncated } from '../../ui/data-table.js';
import { formatTime, pluralize } from '../../ui/format.js';
import { Badge } from '../../ui/panel.js';
import styles from './audit.module.css';

const TONES = { succeeded: 'success', refused: 'warning', failed: 'danger' } as const;

const COLUMNS: readonly DataColumn<AuditEvent>[] = [
  {
    label: 'Time',
    cell: ({ time }) => (
      <time dateTime={time} className={styles.time}>
        {formatTime(time)}
      </time>
    ),
  },
  { label: 'Operation', cell: ({ operation }) => <code>{operation}</code> },
  {
    label: 'Target',
    cell: ({ target }) => (target === null ? '–' : <Truncated text={target} />),
  },
  {
    label: 'Outcome',
    cell: ({ outcome, status }) => (
      <Badge tone={TONES[outcome]}>
        {outcome} ({status})
      </Badge>
    ),
  },
  {
    label: 'Who',
    cell: ({ principal, unlogged_count: unlogged }) => (
      <>
        <Truncated text={principal} />
        {unlogged > 0 && (
          <span className={styles.summary}>after {pluralize(unlogged, 'unlisted attempt')}</span>
        )}
      </>
    ),
  },
  {
    label: 'Address',
    cell: ({ client, via }) => (
      <>
        {client}
        {via !== null && <span className={styles.summary}>via {via}</span>}
      </>
    ),
  },
  {
    label: 'Request',
    cell: ({ request_id: id }) => (
      <code className={styles.request} title={id}>
        {id}
      </code>
    ),
  },
];

export function AuditTable({ events }: { readonly events: readonly AuditEvent[] }) {
  return (
    <DataTable
      label="Audit events"
      columns={COLUMNS}
      rows={events}
      keyOf={({ sequence }) => String(sequence)}
    />
  );
}
