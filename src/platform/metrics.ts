// Prometheus metrics; the only file that imports prom-client. Other parts register a counter, a
// histogram or a gauge here and get a function to update it. Gauges are read when they are scraped,
// so that an idle server runs no timer. (The default collectors of prom-client sample the event loop
// every 10 ms; the process metrics below replace them.)

import { readdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Labels have few values each: never an id or a principal. */
type Labels = Readonly<Record<string, string | number>>;

/** Adds to a counter; the amount is never negative. */
type Count = (amount: number, labels?: Labels) => void;
/** Adds one value to a histogram. */
type Observe = (value: number, labels?: Labels) => void;
type Read = () => number | Promise<number>;

export interface Metrics {
  readonly contentType: string;
  /**
   * `name` ends in `_total`. The known `values` of a label start at 0, so that a rate can be computed
   * from the first increment on.
   */
  addCounter(
    name: string,
    help: string,
    label?: { readonly name: string; readonly values: readonly string[] },
  ): Count;
  /** `buckets` are upper bounds, in the unit that `name` ends in. */
  addHistogram(
    name: string,
    help: string,
    options: { readonly buckets: readonly number[]; readonly labels?: readonly string[] },
  ): Observe;
  /** Reads the value at each scrape. A name that ends in `_total` makes it a counter. */
  addGauge(name: string, help: string, read: Read): void;
  /** A gauge with the constant value 1, whose labels carry the information. */
  addInfo(name: string, help: string, labels: Labels): void;
  /** All metrics in the text exposition format. */
  render(): Promise<string>;
}

/** Buckets for requests: from a cached reply to the default deadline. */
export const SECONDS_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

/** Buckets for phases of a query, which may take tens of microseconds only. */
export const PHASE_SECONDS_BUCKETS = [
  0.000025, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
] as const;

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const metrics: Metrics = {
    contentType: registry.contentType,
    addCounter(name, help, label) {
      const labelNames = label === undefined ? [] : [label.name];
      const counter = new Counter({ name, help, labelNames, registers });
      for (const value of label?.values ?? []) counter.inc({ [label!.name]: value }, 0);
      return (amount, labels) => {
        if (labels === undefined) counter.inc(amount);
        else counter.inc(labels, amount);
      };
    },
    addHistogram(name, help, { buckets, labels: labelNames = [] }) {
      const histogram = new Histogram({
        name,
        help,
        labelNames: [...labelNames],
        buckets: [...buckets],
        registers,
      });
      return (value, labels) => {
        if (labels === undefined) histogram.observe(value);
        else histogram.observe(labels, value);
      };
    },
    addGauge(name, help, read) {
      if (name.endsWith('_total')) {
        const counter: Counter = new Counter({
          name,
          help,
          registers,
          async collect() {
            const value = await read();
            counter.reset();
            counter.inc(value);
          },
        });
        return;
      }
      const gauge: Gauge = new Gauge({
        name,
        help,
        registers,
        async collect() {
          gauge.set(await read());
        },
      });
    },
    addInfo(name, help, labels) {
      const gauge = new Gauge({ name, help, labelNames: Object.keys(labels), registers });
      gauge.set(labels, 1);
    },
    render: () => registry.metrics(),
  };
  addProcessMetrics(metrics);
  return metrics;
}

/** Without a container the system reports 0, or more than the machine has. */
function readMemoryLimit(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

function addProcessMetrics(metrics: Metrics): void {
  const startSeconds = performance.timeOrigin / 1000;
  metrics.addGauge('process_start_time_seconds', 'Start time of the process, Unix time.', () => {
    return startSeconds;
  });
  metrics.addGauge('process_cpu_seconds_total', 'CPU time of all threads, user and system.', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  metrics.addGauge('process_resident_memory_bytes', 'Resident memory of the process.', () =>
    process.memoryUsage.rss(),
  );
  metrics.addGauge(
    'process_memory_limit_bytes',
    'Memory that the process may use: that of its container, or of the machine.',
    readMemoryLimit,
  );
  metrics.addGauge('nodejs_heap_used_bytes', 'Used JavaScript heap of the main thread.', () => {
    return process.memoryUsage().heapUsed;
  });
  metrics.addGauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers outside the JavaScript heap.',
    () => {
      return process.memoryUsage().external;
    },
  );
  metrics.addGauge(
    'process_open_fds',
    'Open file descriptors; 0 where the platform does not report them.',
    () => {
      return countOpenFiles();
    },
  );
  let before = performance.eventLoopUtilization();
  metrics.addGauge(
    'nodejs_eventloop_utilization',
    'Fraction of the time since the last scrape in which the main thread was busy, 0 to 1.',
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
