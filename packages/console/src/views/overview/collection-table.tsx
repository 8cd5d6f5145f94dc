// The table of collections: their sizes, and what they did in the last minutes.

import { Tooltip, TooltipAnchor, TooltipProvider } from '@ariakit/react';
import type { CollectionRecord } from '@sagitta/client';
import { vectorsOf } from '@sagitta/client';
import { Link } from 'wouter';
import { UNNAMED } from '../../../../../src/common/vectors.js';
import { useTraffic } from '../../api/metrics.js';
import { type DataColumn, DataTable } from '../../ui/data-table.js';
import { formatBytes, formatCount, formatMilliseconds } from '../../ui/format.js';
import { Badge, Panel } from '../../ui/panel.js';
import { collectionPath } from '../routes.js';
import styles from './overview.module.css';
import { type CollectionRates, ratesOf } from './traffic.js';

/** Short enough to be the present, and long enough for a percentile. */
const RATE_MINUTES = 5;
const RATE = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

const TONES = { loading: 'warning', failed: 'danger', elsewhere: 'warning' } as const;

type Column = DataColumn<CollectionRecord>;

interface CollectionTableProps {
  readonly collections: readonly CollectionRecord[];
}

export function CollectionTable({ collections }: CollectionTableProps) {
  const { data: traffic } = useTraffic(RATE_MINUTES);
  const activity = traffic === undefined ? [] : activityColumns(collections, ratesOf(traffic));
  return (
    <Panel
      title="Collections"
      actions={
        traffic !== undefined && (
          <span className={styles.note}>
            Rates and latencies of the last {RATE_MINUTES} minutes
          </span>
        )
      }
    >
      <DataTable
        label="Collections"
        columns={[...SIZE_COLUMNS, ...activity, ...OTHER_COLUMNS]}
        rows={collections}
        keyOf={({ id }) => id}
      />
    </Panel>
  );
}

const SIZE_COLUMNS: readonly Column[] = [
  { label: 'Collection', cell: (record) => <Name {...record} /> },
  { label: 'Vectors', kind: 'number', cell: ({ vector_count: count }) => formatCount(count) },
  { label: 'Memory', kind: 'number', cell: ({ memory }) => formatMemory(memory) },
  { label: 'Disk', kind: 'number', cell: ({ disk_bytes: byteCount }) => formatBytes(byteCount) },
];

const OTHER_COLUMNS: readonly Column[] = [
  { label: 'Shape', cell: shapeOf },
  { label: 'Engine', cell: ({ engine }) => <Engine {...engine} /> },
];

/** Percentiles are left out while there are none. */
function activityColumns(
  collections: readonly CollectionRecord[],
  ratesOfId: (id: string) => CollectionRates,
): readonly Column[] {
  const isQueried = collections.some(({ id }) => ratesOfId(id).p50 !== null);
  const column = (label: string, textOf: (rates: CollectionRates) => string): Column => ({
    label,
    kind: 'number',
    cell: ({ id }) => textOf(ratesOfId(id)),
  });
  return [
    column('Queries/min', ({ queriesPerMinute }) => RATE.format(queriesPerMinute)),
    column('Writes/min', ({ writesPerMinute }) => RATE.format(writesPerMinute)),
    ...(isQueried
      ? [
          column('p50', ({ p50 }) => formatLatency(p50)),
          column('p99', ({ p99 }) => formatLatency(p99)),
        ]
      : []),
  ];
}

function formatLatency(ms: number | null): string {
  return ms === null ? '–' : formatMilliseconds(ms);
}

function Name({ id, description, status }: CollectionRecord) {
  return (
    <>
      <Link href={collectionPath(id)} className={styles.idLink} title={id}>
        {id}
      </Link>
      {status !== 'ready' && <Badge tone={TONES[status]}>{status}</Badge>}
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
