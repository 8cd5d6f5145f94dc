// The table of API keys.

import type { ApiKeyRecord } from '@sagitta/client';
import { Ban, RotateCw } from 'lucide-react';
import { IconButton } from '../../ui/button.js';
import { type DataColumn, DataTable, Truncated } from '../../ui/data-table.js';
import { formatTime } from '../../ui/format.js';
import { Badge } from '../../ui/panel.js';
import { statusOf } from './key-draft.js';
import styles from './keys.module.css';

interface KeyTableProps {
  readonly keys: readonly ApiKeyRecord[];
  /** The id of the key that this page uses. */
  readonly ownId: string | undefined;
  readonly onRotate: (key: ApiKeyRecord) => void;
  readonly onRevoke: (key: ApiKeyRecord) => void;
}

const TONES = {
  active: 'success',
  'expires soon': 'warning',
  expired: 'neutral',
  revoked: 'neutral',
} as const;

export function KeyTable({ keys, ownId, onRotate, onRevoke }: KeyTableProps) {
  const nowMs = Date.now();
  const columns: readonly DataColumn<ApiKeyRecord>[] = [
    { label: 'Owner', cell: ({ owner }) => <Truncated text={owner} /> },
    { label: 'Id', cell: (key) => <KeyId id={key.id} isOwn={key.id === ownId} /> },
    { label: 'Scopes', cell: ({ scopes }) => <Scopes scopes={scopes} /> },
    {
      label: 'Status',
      cell: (key) => {
        const status = statusOf(key, nowMs);
        return <Badge tone={TONES[status]}>{status}</Badge>;
      },
    },
    {
      label: 'Expires',
      cell: ({ expires_at: time }) => (time === null ? 'never' : formatTime(time)),
    },
    { label: 'Limits', cell: (key) => <Limits record={key} /> },
    { label: 'Created', cell: ({ created_at: time }) => formatTime(time) },
    { label: 'Rotated', cell: ({ rotated_at: time }) => (time === null ? '–' : formatTime(time)) },
    {
      label: 'Actions',
      isLabelHidden: true,
      kind: 'actions',
      cell: (key) =>
        key.revoked_at === null && (
          <>
            <IconButton
              icon={RotateCw}
              label={`Rotate the key of ${key.owner}`}
              onClick={() => onRotate(key)}
            />
            <IconButton
              icon={Ban}
              label={`Revoke the key of ${key.owner}`}
              onClick={() => onRevoke(key)}
            />
          </>
        ),
    },
  ];
  return <DataTable label="API keys" columns={columns} rows={keys} keyOf={({ id }) => id} />;
}

function KeyId({ id, isOwn }: { readonly id: string; readonly isOwn: boolean }) {
  return (
    <>
      <code>{id}</code> {isOwn && <Badge tone="success">yours</Badge>}
    </>
  );
}

/** The web pages that may use the key, and its rate limit. */
function Limits({ record }: { readonly record: ApiKeyRecord }) {
  const { allowed_origins: origins, rate_limit: rate } = record;
  if (origins === null && rate === null) return '–';
  return (
    <ul className={styles.scopes}>
      {origins?.map((origin) => (
        <li key={origin}>
          <code>{origin}</code>
        </li>
      ))}
      {rate !== null && (
        <li>
          {rate.per_second}/s, bursts of {rate.burst}
        </li>
      )}
    </ul>
  );
}

function Scopes({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <ul className={styles.scopes}>
      {scopes.map((scope) => (
        <li key={scope}>
          <code>{scope}</code>
        </li>
      ))}
    </ul>
  );
}
