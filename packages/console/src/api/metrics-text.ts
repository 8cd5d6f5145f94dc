// Parses the Prometheus text format of `/metrics`.

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of each metric by its name; a histogram is three metrics (`_bucket`, `_sum`, `_count`). */
export type MetricSamples = ReadonlyMap<string, readonly Sample[]>;

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

/** The sum of all samples of a metric; undefined if there are none. */
export function sumOf(metrics: MetricSamples, name: string): number | undefined {
  return metrics.get(name)?.reduce((sum, { value }) => sum + value, 0);
}
