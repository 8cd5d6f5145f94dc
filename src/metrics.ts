// Metrics for Prometheus. Everything but the counts of requests is read when somebody scrapes: an
// idle server keeps no timer for them. (The default collectors of prom-client watch the event loop
// with a timer of 10 ms, hence our own.)

import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  readonly contentType: string;
  /** For counters of other parts; names begin with `sagitta_`. */
  readonly registry: Registry;
  /** `route` is the path of the route with its placeholders, so that there are few of them. */
  observeRequest(request: {
    method: string;
    route: string;
    status: number | string;
    seconds: number;
  }): void;
  /** A gauge that is read at each scrape. */
  addGauge(name: string, help: string, read: () => number): void;
  /** The text format. */
  render(): Promise<string>;
}

/** From a memory hit to the deadline of a request. */
const SECONDS_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

export function createMetrics(): Metrics {
  const registry = new Registry();
  const requestSeconds = new Histogram({
    name: 'sagitta_http_request_seconds',
    help: 'Seconds from the head of a request to the end of its reply; the count is the number of requests.',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS_BUCKETS,
    registers: [registry],
  });
  const metrics: Metrics = {
    contentType: registry.contentType,
    registry,
    observeRequest({ method, route, status, seconds }) {
      requestSeconds.observe({ method, route, status }, seconds);
    },
    addGauge(name, help, read) {
      const gauge: Gauge = new Gauge({
        name,
        help,
        registers: [registry],
        collect: () => gauge.set(read()),
      });
    },
    render: () => registry.metrics(),
  };
  addProcessGauges(metrics);
  return metrics;
}

function addProcessGauges(metrics: Metrics): void {
  const startSeconds = performance.timeOrigin / 1000;
  metrics.addGauge('process_start_time_seconds', 'When the process started, Unix time.', () => {
    return startSeconds;
  });
  metrics.addGauge('process_cpu_seconds_total', 'CPU time of all threads, user and system.', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  metrics.addGauge('process_resident_memory_bytes', 'Resident memory.', () =>
    process.memoryUsage.rss(),
  );
  metrics.addGauge('nodejs_heap_used_bytes', 'JavaScript heap of the main thread in use.', () => {
    return process.memoryUsage().heapUsed;
  });
  metrics.addGauge('nodejs_external_memory_bytes', 'Memory behind buffers.', () => {
    return process.memoryUsage().external;
  });
  metrics.addGauge(
    'process_open_fds',
    'Open file descriptors; 0 where the system does not tell.',
    () => {
      return countOpenFiles();
    },
  );
  let before = performance.eventLoopUtilization();
  metrics.addGauge(
    'nodejs_eventloop_utilization',
    'Share of the time since the last scrape in which the main thread was busy, 0 to 1.',
    () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
  );
}

function countOpenFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 0;
  }
}
