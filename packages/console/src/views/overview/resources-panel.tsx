// Memory, disk and the used shares of limits. Missing without the scope for metrics.

import { useMetrics } from '../../api/metrics.js';
import { type MetricSamples, sumOf } from '../../api/metrics-text.js';
import { useLimits } from '../../api/queries.js';
import { formatBytes, formatCompact } from '../../ui/format.js';
import { Meter } from '../../ui/meter.js';
import { Panel, Stat, StatList } from '../../ui/panel.js';
import { limitUsageOf } from './limit-usage.js';
import styles from './overview.module.css';

export function ResourcesPanel() {
  const { data: metrics } = useMetrics();
  const { data: limits } = useLimits();
  if (metrics === undefined) return null;
  return (
    <Panel title="Memory, disk and limits">
      <StatList>
        <Figures metrics={metrics} />
      </StatList>
      {limits !== undefined && (
        <div className={styles.meters}>
          {limitUsageOf(metrics, limits).map((usage) => (
            <Meter key={usage.label} {...usage} />
          ))}
        </div>
      )}
    </Panel>
  );
}

function Figures({ metrics }: { readonly metrics: MetricSamples }) {
  const amountOf = (name: string) => sumOf(metrics, name) ?? 0;
  const deviceBytes = amountOf('sagitta_device_bytes');
  const mappedBytes = amountOf('sagitta_mapped_bytes');
  return (
    <>
      <Stat label="Vectors" value={formatCompact(amountOf('sagitta_vectors'))} />
      <Stat
        label="Memory of collections"
        value={formatBytes(amountOf('sagitta_host_bytes'))}
        note={mappedBytes > 0 && `and ${formatBytes(mappedBytes)} of mapped files`}
      />
      {deviceBytes > 0 && <Stat label="Device memory" value={formatBytes(deviceBytes)} />}
      <Stat label="Process memory" value={formatBytes(amountOf('process_resident_memory_bytes'))} />
      <Stat
        label="Unflushed log"
        value={formatBytes(amountOf('sagitta_log_bytes'))}
        note="replayed at a restart"
      />
    </>
  );
}
