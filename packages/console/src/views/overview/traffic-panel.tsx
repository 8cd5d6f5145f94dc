// Live charts of requests, errors and latencies of the last minutes.

import { useScrapes } from '../../api/metrics.js';
import { TimeChart } from '../../ui/chart.js';
import { formatMilliseconds } from '../../ui/format.js';
import { Panel } from '../../ui/panel.js';
import { ErrorMessage, Loading } from '../../ui/states.js';
import styles from './overview.module.css';
import { trafficOf } from './traffic.js';

const RATE = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

export function TrafficPanel() {
  const { data: scrapes, isForbidden, error, refetch } = useScrapes();
  if (isForbidden) {
    return (
      <Panel title="Traffic">
        <p>
          Request and latency figures require the scope metrics:read, which your credential lacks.
        </p>
      </Panel>
    );
  }
  if (scrapes === undefined) {
    return (
      <Panel title="Traffic">
        {error === null ? (
          <Loading label="Loading the metrics" />
        ) : (
          <ErrorMessage error={error} onRetry={() => void refetch()} />
        )}
      </Panel>
    );
  }
  const traffic = trafficOf(scrapes);
  return (
    <Panel>
      <div className={styles.charts}>
        <TimeChart
          label="Requests per second"
          times={traffic.times}
          format={(value) => RATE.format(value)}
          series={[
            { label: 'all', color: '--accent', values: traffic.requestsPerSecond },
            {
              label: 'errors',
              color: '--danger',
              dash: [5, 4],
              values: traffic.errorsPerSecond,
            },
          ]}
        />
        <TimeChart
          label="Latency"
          times={traffic.times}
          format={(value) => (value === 0 ? '0' : formatMilliseconds(value))}
          series={[
            { label: 'p50', color: '--accent', values: traffic.p50 },
            { label: 'p95', color: '--success', dash: [6, 3], values: traffic.p95 },
            { label: 'p99', color: '--warning', dash: [2, 3], values: traffic.p99 },
          ]}
        />
      </div>
    </Panel>
  );
}
