// The state of the server in figures. Figures from the metrics are missing without the scope for them.

import type { Readiness } from '@sagitta/client';
import { useScrapes } from '../../api/metrics.js';
import { type MetricSamples, sumOf } from '../../api/metrics-text.js';
import { useApi } from '../../api/queries.js';
import { formatBytes, formatCompact, formatDuration } from '../../ui/format.js';
import { Badge, Panel, Stat, StatList } from '../../ui/panel.js';
import styles from './overview.module.css';

const TONES = { ready: 'success', starting: 'warning', stopping: 'warning' } as const;
const STATUS_TEXTS = { ready: 'Ready', starting: 'Starting', stopping: 'Stopping' };

export function ServicePanel({ readiness }: { readonly readiness: Readiness | undefined }) {
  const { data: scrapes } = useScrapes();
  const { data: info } = useApi(['info'], (client, signal) => client.service.info({ signal }));
  const latest = scrapes?.at(-1);
  const build = latest?.metrics.get('sagitta_build_info')?.[0]?.labels;
  return (
    <Panel>
      <StatList>
        <Stat
          label="Status"
          value={
            readiness === undefined ? (
              '–'
            ) : (
              <Badge tone={TONES[readiness.status]}>{STATUS_TEXTS[readiness.status]}</Badge>
            )
          }
          note={readiness?.reason}
        />
        <Stat
          label="Version"
          value={info?.version ?? '–'}
          note={build && `Node ${build.node?.replace(/^v/, '')}, engine ${build.engine}`}
        />
        {latest !== undefined && <Figures metrics={latest.metrics} timeMs={latest.timeMs} />}
      </StatList>
      {readiness !== undefined && readiness.collections_not_ready.length > 0 && (
        <NotReady collections={readiness.collections_not_ready} />
      )}
    </Panel>
  );
}

function Figures({
  metrics,
  timeMs,
}: {
  readonly metrics: MetricSamples;
  readonly timeMs: number;
}) {
  const start = sumOf(metrics, 'process_start_time_seconds');
  const amountOf = (name: string) => sumOf(metrics, name) ?? 0;
  const deviceBytes = amountOf('sagitta_device_bytes');
  const mappedBytes = amountOf('sagitta_mapped_bytes');
  return (
    <>
      <Stat
        label="Uptime"
        value={start === undefined ? '–' : formatDuration(Math.max(0, timeMs / 1000 - start))}
      />
      <Stat label="Vectors" value={formatCompact(amountOf('sagitta_vectors'))} />
      <Stat
        label="Collection memory"
        value={formatBytes(amountOf('sagitta_host_bytes'))}
        note={mappedBytes > 0 && `plus ${formatBytes(mappedBytes)} of mapped files`}
      />
      {deviceBytes > 0 && <Stat label="Device memory" value={formatBytes(deviceBytes)} />}
      <Stat label="Process memory" value={formatBytes(amountOf('process_resident_memory_bytes'))} />
      <Stat
        label="Unflushed log"
        value={formatBytes(amountOf('sagitta_log_bytes'))}
        note="replayed on restart"
      />
    </>
  );
}

function NotReady({ collections }: { readonly collections: Readiness['collections_not_ready'] }) {
  return (
    <ul className={styles.notReady}>
      {collections.map(({ id, status, reason }) => (
        <li key={id}>
          <strong>{id}</strong> is {status}: {reason}
        </li>
      ))}
    </ul>
  );
}
