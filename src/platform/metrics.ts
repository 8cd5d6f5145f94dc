// Prometheus metrics; the only file that imports prom-client. Other code registers each counter and histogram by its
// name in the table and gets a function to update it. Gauges are read when scraped, so an idle server runs no timers.
// The default collectors of prom-client sample the event loop every 10 ms; the process metrics below replace them.

import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { memoryOfProcess } from './memory-limit.js';
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  METRIC_TABLE,
  type MetricEntry,
} from './metric-table.js';

/** Each label has few values: never an id or a principal. */
export type Labels = Readonly<Record<string, string | number>>;

/** Adds to a counter; the amount is never negative. */
type Count = (amount: number, labels?: Labels) => void;
/** Adds one value to a histogram. */
type Observe = (value: number, labels?: Labels) => void;
type Read = () => number | Promise<number>;

export interface Metrics {
  readonly contentType: string;
  addCounter(name: CounterName): Count;
  addHistogram(name: HistogramName): Observe;
  /** A gauge or counter whose value is read at each scrape. */
  addReading(name: GaugeName | CounterName, read: Read): void;
  /** A gauge with the constant value 1, whose labels carry the information. */
  addInfo(name: GaugeName, labels: Labels): void;
  /** All metrics in the text exposition format. */
  render(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const metrics: Metrics = {
    contentType: registry.contentType,
    addCounter(name) {
      const { labels: known = {} } = entryOf(name);
      const counter = new Counter({ ...describe(name), registers });
      for (const [label, values] of Object.entries(known)) {
        for (const value of values) counter.inc({ [label]: value }, 0);
      }
      return (amount, labels) => {
        if (labels === undefined) counter.inc(amount);
        else counter.inc(labels, amount);
      };
    },
    addHistogram(name) {
      const buckets = [...(entryOf(name).buckets ?? [])];
      const histogram = new Histogram({ ...describe(name), buckets, registers });
      return (value, labels) => {
        if (labels === undefined) histogram.observe(value);
        else histogram.observe(labels, value);
      };
    },
    addReading(name, read) {
      if (entryOf(name).type === 'counter') {
        const counter: Counter = new Counter({
          ...describe(name),
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
        ...describe(name),
        registers,
        async collect() {
          gauge.set(await read());
        },
      });
    },
    addInfo(name, labels) {
      new Gauge({ ...describe(name), registers }).set(labels, 1);
    },
    render: () => registry.metrics(),
  };
  addProcessMetrics(metrics);
  return metrics;
}

function entryOf(name: keyof typeof METRIC_TABLE): MetricEntry {
  return METRIC_TABLE[name];
}

/** The help is plain text, while the meaning is Markdown. */
function describe(name: keyof typeof METRIC_TABLE) {
  const { meaning, labels = {} } = entryOf(name);
  return { name, help: meaning.replaceAll('`', ''), labelNames: Object.keys(labels) };
}

function addProcessMetrics(metrics: Metrics): void {
  const startSeconds = performance.timeOrigin / 1000;
  metrics.addReading('process_start_time_seconds', () => startSeconds);
  metrics.addReading('process_cpu_seconds_total', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  metrics.addReading('process_resident_memory_bytes', () => process.memoryUsage.rss());
  metrics.addReading('process_memory_limit_bytes', memoryOfProcess);
  metrics.addReading('nodejs_heap_used_bytes', () => process.memoryUsage().heapUsed);
  metrics.addReading('nodejs_external_memory_bytes', () => process.memoryUsage().external);
  metrics.addReading('process_open_fds', countOpenFiles);
  let before = performance.eventLoopUtilization();
  metrics.addReading('nodejs_eventloop_utilization', () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  });
}

function countOpenFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return 0;
  }
}
