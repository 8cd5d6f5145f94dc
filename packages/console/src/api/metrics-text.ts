// Parses the Prometheus text format of `/metrics`, and derives rates of counters and quantiles of
// histograms from two scrapes.

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of each metric by its name; a histogram is three metrics (`_bucket`, `_sum`, `_count`). */
export type MetricSamples = ReadonlyMap<string, readonly Sample[]>;

/** The metrics at one moment. */
export interface Scrape {
  /** Unix time in milliseconds. */
  readonly timeMs: number;
  readonly metrics: MetricSamples;
}

type LabelTest = (labels: Sample['labels']) => boolean;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/** Ignores lines that are not samples, such as comments. */
export function parseMetrics(text: string): MetricSamples {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) continue;
    const sample = { labels: parseLabels(labels), value: parseNumber(value) };
    const samples = metrics.get(name);
    if (samples === undefined) metrics.set(name, [sample]);
    else samples.push(sample);
  }
  return metrics;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name, value] of text.matchAll(LABEL)) {
    labels[name!] = value!.replace(/\\[n"\\]/g, (escaped) => ESCAPES[escaped]!);
  }
  return labels;
}

function parseNumber(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

/** The sum of all samples of a metric whose labels pass the test; undefined if none do. */
export function sumOf(metrics: MetricSamples, name: string, test: LabelTest = () => true) {
  const samples = (metrics.get(name) ?? []).filter(({ labels }) => test(labels));
  return samples.length === 0 ? undefined : samples.reduce((sum, { value }) => sum + value, 0);
}

/** The growth of a counter, which starts again at 0 when the server restarts. */
export function increaseOf(
  before: MetricSamples,
  after: MetricSamples,
  name: string,
  test?: LabelTest,
): number {
  const from = sumOf(before, name, test) ?? 0;
  const to = sumOf(after, name, test) ?? 0;
  return to < from ? to : to - from;
}

/**
 * Quantiles of the values that a histogram observed between two scrapes, interpolated within buckets as
 * Prometheus does. Undefined if it observed none. The last bucket is unbounded, so its start is returned.
 */
export function quantilesOf(
  before: MetricSamples,
  after: MetricSamples,
  name: string,
  quantiles: readonly number[],
  test?: LabelTest,
): readonly number[] | undefined {
  const from = bucketsOf(before, name, test);
  const to = bucketsOf(after, name, test);
  const ends = [...to.keys()].sort((a, b) => a - b);
  const isRestart = ends.some((end) => to.get(end)! < (from.get(end) ?? 0));
  const counts = ends.map((end) => to.get(end)! - (isRestart ? 0 : (from.get(end) ?? 0)));
  const total = counts.at(-1) ?? 0;
  if (total === 0) return undefined;
  return quantiles.map((quantile) => interpolate(ends, counts, quantile * total));
}

/** Cumulative counts by the upper bound of their bucket. */
function bucketsOf(metrics: MetricSamples, name: string, test?: LabelTest): Map<number, number> {
  const buckets = new Map<number, number>();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    if (test?.(labels) === false) continue;
    const end = parseNumber(labels.le ?? '');
    buckets.set(end, (buckets.get(end) ?? 0) + value);
  }
  return buckets;
}

function interpolate(ends: readonly number[], counts: readonly number[], rank: number): number {
  const at = counts.findIndex((count) => count >= rank);
  const start = at === 0 ? 0 : ends[at - 1]!;
  const end = ends[at]!;
  if (end === Number.POSITIVE_INFINITY) return start;
  const below = at === 0 ? 0 : counts[at - 1]!;
  return start + ((end - start) * (rank - below)) / (counts[at]! - below);
}
