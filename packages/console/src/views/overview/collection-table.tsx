// The table of collections, with their writes while the overview is open.

import { Tooltip, TooltipAnchor, TooltipProvider } from '@ariakit/react';
import type { CollectionRecord } from '@sagitta/client';
import { vectorsOf } from '@sagitta/client';
import { useEffect } from 'react';
import { Link } from 'wouter';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { createStore, useStore } from '../../api/store.js';
import { Sparkline } from '../../ui/chart.js';
import { type DataColumn, DataTable } from '../../ui/data-table.js';
import { formatBytes, formatCount, pluralize } from '../../ui/format.js';
import { Badge } from '../../ui/panel.js';
import { collectionPath } from '../routes.js';
import styles from './overview.module.css';
import { addSequences, type Sequences, writesOf } from './write-activity.js';

interface CollectionTableProps {
  readonly collections: readonly CollectionRecord[];
  readonly updatedAtMs: number;
}

/** Outside the component, so that the history survives a visit to another view. */
const sequences = createStore<readonly Sequences[]>([]);
let addedAtMs = 0;

const TONES = {
  ready: 'success',
  loading: 'warning',
  failed: 'danger',
  elsewhere: 'warning',
} as const;

export function CollectionTable({ collections, updatedAtMs }: CollectionTableProps) {
  useEffect(() => {
    if (updatedAtMs === addedAtMs) return;
    addedAtMs = updatedAtMs;
    sequences.set(addSequences(sequences.get(), collections));
  }, [collections, updatedAtMs]);
  const history = useStore(sequences);
  return (
    <DataTable
      label="Collections"
      columns={columnsOf(history)}
      rows={collections}
      keyOf={({ id }) => id}
    />
  );
}

function columnsOf(history: readonly Sequences[]): readonly DataColumn<CollectionRecord>[] {
  return [
    { label: 'Collection', cell: (record) => <Name {...record} /> },
    {
      label: 'Vectors',
      kind: 'number',
      cell: ({ vector_count: count }) => formatCount(count),
    },
    { label: 'Shape', cell: shapeOf },
    { label: 'Engine', cell: ({ engine }) => <Engine {...engine} /> },
    { label: 'Memory', kind: 'number', cell: ({ memory }) => formatMemory(memory) },
    {
      label: 'Disk',
      kind: 'number',
      cell: ({ disk_bytes: byteCount }) => formatBytes(byteCount),
    },
    {
      label: 'Status',
      cell: ({ status }) => <Badge tone={TONES[status]}>{status}</Badge>,
    },
    { label: 'Writes', cell: ({ id }) => <Writes id={id} history={history} /> },
  ];
}

function Name({ id, description }: CollectionRecord) {
  return (
    <>
      <Link href={collectionPath(id)} className={styles.idLink} title={id}>
        {id}
      </Link>
      {description !== null && (
        <span className={styles.description} title={description} dir="auto">
          {description}
        </span>
      )}
    </>
  );
}

function shapeOf(collection: CollectionRecord) {
  const { dimension, metric } = collection;
  const named = vectorsOf(collection).filter(({ name }) => name !== UNNAMED);
  return (
    [
      ...(dimension === undefined ? [] : [`${formatCount(dimension)}, ${metric}`]),
      ...(named.length === 0 ? [] : [`${named.length} named`]),
    ].join(' + ') || 'text only'
  );
}

/** The engine that searches the collection, with the reason as a tooltip. */
function Engine({ name, reason }: CollectionRecord['engine']) {
  return (
    <TooltipProvider>
      <TooltipAnchor render={<button type="button" className={styles.engine} />}>
        {name}
      </TooltipAnchor>
      <Tooltip className={styles.tooltip}>{reason}</Tooltip>
    </TooltipProvider>
  );
}

function formatMemory({
  host_bytes: host,
  mapped_bytes: mapped,
  device_bytes: device,
}: CollectionRecord['memory']): string {
  return [
    formatBytes(host),
    ...(mapped > 0 ? [`${formatBytes(mapped)} mapped`] : []),
    ...(device > 0 ? [`${formatBytes(device)} on devices`] : []),
  ].join(' + ');
}

function Writes({ id, history }: { readonly id: string; readonly history: readonly Sequences[] }) {
  const writes = writesOf(history, id);
  const total = writes.reduce((sum, count) => sum + count, 0);
  return <Sparkline values={writes} label={`${pluralize(total, 'write')} since the page opened`} />;
}
