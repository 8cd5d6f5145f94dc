// Charts of the requests, errors, latencies and written vectors of the last hour.

import { useTraffic } from '../../api/metrics.js';
import { TimeChart } from '../../ui/chart.js';
import { formatMilliseconds } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import styles from './overview.module.css';
import { columnsOf, type TrafficColumns } from './traffic.js';

/** As long as the server keeps traffic. */
export const HISTORY_MINUTES = 60;

const RATE = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
const formatRate = (value: number) => RATE.format(value);

export function TrafficPanel() {
  const { data: traffic, isForbidden, error, refetch } = useTraffic(HISTORY_MINUTES);
  return (
    <Panel
      title="Traffic"
      actions={
        traffic !== undefined && <span className={styles.note}>{sourceOf(traffic.node)}</span>
      }
    >
      {traffic !== undefined && <Charts columns={columnsOf(traffic.intervals)} />}
      {traffic === undefined && (
        <div className={styles.placeholder}>
          {isForbidden && <p>Traffic needs the scope metrics:read, which your credential lacks.</p>}
          {!isForbidden && error === null && <Loading label="Loading the traffic" />}
          {!isForbidden && error !== null && (
            <ErrorMessage error={error} onRetry={() => void refetch()} />
          )}
        </div>
      )}
    </Panel>
  );
}

function sourceOf(node: string | null): string {
  return node === null ? 'Last 60 minutes' : `Last 60 minutes of the node ${node}`;
}

function Charts({ columns }: { readonly columns: TrafficColumns }) {
  return (
    <div className={styles.charts}>
      <TimeChart
        label="Requests per second"
        times={columns.times}
        format={formatRate}
        series={[
          { label: 'all', color: '--accent', values: columns.requestsPerSecond },
          { label: 'errors', color: '--danger', dash: [5, 4], values: columns.errorsPerSecond },
        ]}
      />
      <TimeChart
        label="Latency"
        times={columns.times}
        format={(value) => (value === 0 ? '0' : formatMilliseconds(value))}
        series={[
          { label: 'p50', color: '--accent', values: columns.p50 },
          { label: 'p95', color: '--success', dash: [6, 3], values: columns.p95 },
          { label: 'p99', color: '--warning', dash: [2, 3], values: columns.p99 },
        ]}
      />
      <TimeChart
        label="Vectors written per second"
        times={columns.times}
        format={formatRate}
        series={[{ label: 'written', color: '--accent', values: columns.rowsPerSecond }]}
      />
    </div>
  );
}
