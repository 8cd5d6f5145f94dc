// Prometheus metrics; the only file that imports prom-client. Other code registers each counter and histogram by its
// name in the table and gets a function to update it. Gauges are read when scraped, so an idle server runs no timers.
// The history of traffic is kept beside them, because it names collections, which no label may.
// The default collectors of prom-client sample the event loop every 10 ms; the process metrics below replace them.

import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Counter, Gauge, type Histogram, Registry } from 'prom-client';
import { assert } from '../common/errors.js';
import { memoryOfProcess } from './memory-limit.js';
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  METRIC_TABLE,
  type MetricEntry,
} from './metric-table.js';
import { TrafficHistory } from './traffic-history.js';

/** Each label has few values: never an id or a principal. */
export type Labels = Readonly<Record<string, string | number>>;

/** Adds to a counter; the amount is never negative. */
type Count = (amount: number, labels?: Labels) => void;
/** Adds one value to a histogram. */
type Observe = (value: number, labels?: Labels) => void;
type Read = () => number | Promise<number>;

export interface Metrics {
  readonly contentType: string;
  readonly traffic: TrafficHistory;
  addCounter(name: CounterName): Count;
  addHistogram(name: HistogramName): Observe;
  /** A gauge or counter whose value is read at each scrape. */
  addReading(name: GaugeName | CounterName, read: Read): void;
  /** A gauge by the values of its only label. */
  addReadings(name: GaugeName, read: () => ReadonlyMap<string, number>): void;
  /** A gauge with the constant value 1, whose labels carry the information. */
  addInfo(name: GaugeName, labels: Labels): void;
  /** All metrics in the text exposition format. */
  render(): Promise<string>;
}

export function createMetrics(traffic = new TrafficHistory()): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const metrics: Metrics = {
    contentType: registry.contentType,
    traffic,
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
      const buckets = new BucketCounts(describe(name), entryOf(name).buckets ?? []);
      registry.registerMetric(buckets as unknown as Histogram);
      return (value, labels = NO_LABELS) => buckets.observe(value, labels);
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
    addReadings(name, read) {
      const [label] = Object.keys(entryOf(name).labels ?? {});
      assert(label !== undefined, `${name} has a label`);
      const gauge: Gauge = new Gauge({
        ...describe(name),
        registers,
        collect() {
          for (const [value, number] of read()) gauge.set({ [label]: value }, number);
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

const NO_LABELS: Labels = {};

/** The observations with the same values of the labels. */
interface Series {
  readonly labels: Labels;
  /** The number of observations in each bucket, which the next one does not include; the last is without a bound. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram in a registry of prom-client, whose own takes ten times as long to observe a value: a query observes
 * seven.
 */
class BucketCounts {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #labelNames: readonly string[];
  readonly #bounds: readonly number[];
  /** By the values of the labels. */
  readonly #series = new Map<string, Series>();

  constructor({ name, help, labelNames }: ReturnType<typeof describe>, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
    this.#bounds = bounds;
    if (labelNames.length === 0) this.#seriesOf(NO_LABELS);
  }

  observe(value: number, labels: Labels): void {
    const series = this.#seriesOf(labels);
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    series.counts[bucket]!++;
    series.sum += value;
  }

  /** What prom-client renders. */
  get() {
    const { name, help, type, aggregator } = this;
    const values = [...this.#series.values()].flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const buckets = Array.from(counts, (more, i) => {
        count += more;
        const le = this.#bounds[i] ?? '+Inf';
        return { labels: { le, ...labels }, value: count, metricName: `${name}_bucket` };
      });
      return [
        ...buckets,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ];
    });
    return { name, help, type, aggregator, values };
  }

  #seriesOf(labels: Labels): Series {
    let key = '';
    for (const name of this.#labelNames) key += `${labels[name]}\n`;
    let series = this.#series.get(key);
    if (series === undefined) {
      series = { labels, counts: new Float64Array(this.#bounds.length + 1), sum: 0 };
      this.#series.set(key, series);
    }
    return series;
  }
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
