// Derives traffic from scrapes of `/metrics`: requests and errors per second and latencies between every two
// scrapes. Probes and requests for metrics, which the console itself sends, do not count.

import { increaseOf, quantilesOf, type Scrape } from '../../api/metrics-text.js';

/** Columns of equal length; null for unknown values. */
export interface Traffic {
  /** Unix times in seconds, ascending. */
  readonly times: readonly number[];
  readonly requestsPerSecond: readonly (number | null)[];
  readonly errorsPerSecond: readonly (number | null)[];
  /** Milliseconds. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

const DURATION = 'sagitta_http_request_duration_seconds';
const OWN_ROUTES = new Set(['/metrics', '/livez', '/readyz', 'other']);

export function trafficOf(history: readonly Scrape[]): Traffic {
  const intervals = history.slice(1).map((after, at) => intervalOf(history[at]!, after));
  return {
    times: intervals.map(({ time }) => time),
    requestsPerSecond: intervals.map(({ requests }) => requests),
    errorsPerSecond: intervals.map(({ errors }) => errors),
    p50: intervals.map(({ latencies }) => latencies?.[0] ?? null),
    p95: intervals.map(({ latencies }) => latencies?.[1] ?? null),
    p99: intervals.map(({ latencies }) => latencies?.[2] ?? null),
  };
}

function intervalOf(before: Scrape, after: Scrape) {
  const seconds = (after.timeMs - before.timeMs) / 1000;
  const countOf = (test: typeof isServed) =>
    increaseOf(before.metrics, after.metrics, `${DURATION}_count`, test) / seconds;
  const latencies = quantilesOf(
    before.metrics,
    after.metrics,
    DURATION,
    [0.5, 0.95, 0.99],
    isServed,
  );
  return {
    time: after.timeMs / 1000,
    requests: countOf(isServed),
    errors: countOf((labels) => isServed(labels) && isError(labels)),
    latencies: latencies?.map((value) => value * 1000),
  };
}

function isServed({ route }: Readonly<Record<string, string>>): boolean {
  return !OWN_ROUTES.has(route ?? '');
}

function isError({ status }: Readonly<Record<string, string>>): boolean {
  return /^[45]/.test(status ?? '');
}
