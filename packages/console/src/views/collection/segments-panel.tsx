// The segments of a collection with their memory and files, and the size of its log.

import type { SegmentRecord } from '@sagitta/client';
import { useApi } from '../../api/queries.js';
import { DataTable } from '../../ui/data-table.js';
import { formatBytes, formatCount, pluralize } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import type { CollectionViewProps } from '../collection-view-props.js';
import styles from './schema.module.css';

const SHOWN_MAX = 200;

const COLUMNS = [
  {
    label: 'Segment',
    kind: 'number' as const,
    cell: ({ number }: SegmentRecord) => formatCount(number),
  },
  { label: 'State', cell: ({ state }: SegmentRecord) => state },
  {
    label: 'Vectors',
    kind: 'number' as const,
    cell: ({ vector_count: count }: SegmentRecord) => formatCount(count),
  },
  {
    label: 'Rows',
    kind: 'number' as const,
    cell: ({ row_count: count }: SegmentRecord) => formatCount(count),
  },
  {
    label: 'Memory',
    kind: 'number' as const,
    cell: ({ memory }: SegmentRecord) => formatBytes(memory.host_bytes),
  },
  {
    label: 'Mapped',
    kind: 'number' as const,
    cell: ({ memory }: SegmentRecord) => formatBytes(memory.mapped_bytes),
  },
  {
    label: 'Device',
    kind: 'number' as const,
    cell: ({ memory }: SegmentRecord) => formatBytes(memory.device_bytes),
  },
  {
    label: 'File',
    kind: 'number' as const,
    cell: ({ file_bytes: byteCount }: SegmentRecord) => formatBytes(byteCount),
  },
];

export function SegmentsPanel({ collection: { id } }: CollectionViewProps) {
  const { data, error, refetch } = useApi(
    ['collection', id, 'segments'],
    (client, signal) => client.collections.segments(id, { limit: SHOWN_MAX }, { signal }),
    { refetchInterval: 10_000 },
  );
  return (
    <Panel
      title="Segments"
      actions={
        data !== undefined && (
          <span className={styles.summary}>
            {pluralize(data.total, 'segment')}, {formatBytes(data.file_bytes)} of files and{' '}
            {formatBytes(data.log_bytes)} of log
            {data.segments.length < data.total && `; the first ${SHOWN_MAX} are shown`}
          </span>
        )
      }
    >
      {data === undefined && error === null && <Loading />}
      {error !== null && <ErrorMessage error={error} onRetry={() => void refetch()} />}
      {data !== undefined && data.segments.length > 0 && (
        <DataTable
          label="Segments"
          columns={COLUMNS}
          rows={data.segments}
          keyOf={({ number }) => String(number)}
        />
      )}
    </Panel>
  );
}
