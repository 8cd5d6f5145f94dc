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

const CHARTS = ['Requests per second', 'Latency', 'Vectors written per second'] as const;

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
      {isForbidden && (
        <p className={styles.note}>
          Traffic, slow queries, memory and limits need the scope metrics:read, which your
          credential lacks.
        </p>
      )}
      {traffic === undefined && error === null && (
        <div className={styles.charts}>
          {CHARTS.map((label) => (
            <div key={label} className={styles.placeholder}>
              <Loading label={`Loading: ${label}`} />
            </div>
          ))}
        </div>
      )}
      {!isForbidden && error !== null && (
        <ErrorMessage error={error} onRetry={() => void refetch()} />
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
        label={CHARTS[0]}
        times={columns.times}
        format={formatRate}
        series={[
          { label: 'all', color: '--accent', values: columns.requestsPerSecond },
          { label: 'errors', color: '--danger', dash: [5, 4], values: columns.errorsPerSecond },
        ]}
      />
      <TimeChart
        label={CHARTS[1]}
        times={columns.times}
        format={(value) => (value === 0 ? '0' : formatMilliseconds(value))}
        series={[
          { label: 'p50', color: '--accent', values: columns.p50 },
          { label: 'p95', color: '--success', dash: [6, 3], values: columns.p95 },
          { label: 'p99', color: '--warning', dash: [2, 3], values: columns.p99 },
        ]}
      />
      <TimeChart
        label={CHARTS[2]}
        times={columns.times}
        format={formatRate}
        series={[{ label: 'written', color: '--accent', values: columns.rowsPerSecond }]}
      />
    </div>
  );
}
