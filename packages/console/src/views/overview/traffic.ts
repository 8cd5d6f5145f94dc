// Derives what the overview shows from the traffic that the server has kept: the columns of charts, the rates of
// collections, and where the time of a slow query went.

import type { CollectionTraffic, SlowQuery, Traffic, TrafficInterval } from '@sagitta/client';
import { formatCount, pluralize } from '../../ui/format.js';

/** Columns of equal length; null for unknown values. */
export interface TrafficColumns {
  /** Unix times in seconds, ascending: the ends of the intervals. */
  readonly times: readonly number[];
  readonly requestsPerSecond: readonly number[];
  readonly errorsPerSecond: readonly number[];
  readonly rowsPerSecond: readonly number[];
  /** Milliseconds. */
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** The rate of a shorter interval says little. */
const SECONDS_MIN = 5;

/** Without the current interval while it is too short for a rate, unless it is the only one. */
export function columnsOf(intervals: readonly TrafficInterval[]): TrafficColumns {
  const long = intervals.filter(({ seconds }) => seconds >= SECONDS_MIN);
  const shown = long.length === 0 ? intervals.slice(-1) : long;
  const perSecond = (name: 'requests' | 'errors' | 'rows_written') =>
    shown.map((interval) => interval[name] / Math.max(interval.seconds, 1));
  return {
    times: shown.map(({ time, seconds }) => Date.parse(time) / 1000 + seconds),
    requestsPerSecond: perSecond('requests'),
    errorsPerSecond: perSecond('errors'),
    rowsPerSecond: perSecond('rows_written'),
    p50: shown.map(({ p50_ms: ms }) => ms),
    p95: shown.map(({ p95_ms: ms }) => ms),
    p99: shown.map(({ p99_ms: ms }) => ms),
  };
}

export interface CollectionRates {
  readonly queriesPerMinute: number;
  readonly writesPerMinute: number;
  /** Milliseconds; null without queries. */
  readonly p50: number | null;
  readonly p99: number | null;
}

const IDLE: CollectionRates = { queriesPerMinute: 0, writesPerMinute: 0, p50: null, p99: null };

/** The rates of a collection by its id. */
export function ratesOf({ intervals, collections }: Traffic): (id: string) => CollectionRates {
  const seconds = intervals.reduce((sum, interval) => sum + interval.seconds, 0);
  const minutes = Math.max(seconds, 1) / 60;
  const rates = new Map(collections.map((each) => [each.id, rateOf(each, minutes)]));
  return (id) => rates.get(id) ?? IDLE;
}

function rateOf(traffic: CollectionTraffic, minutes: number): CollectionRates {
  return {
    queriesPerMinute: traffic.queries / minutes,
    writesPerMinute: traffic.rows_written / minutes,
    p50: traffic.p50_ms,
    p99: traffic.p99_ms,
  };
}

const PHASES = [
  ['parse', 'parse_ms'],
  ['text to vector', 'embed_ms'],
  ['plan', 'plan_ms'],
  ['filter', 'filter_ms'],
  ['wait', 'wait_ms'],
  ['search', 'search_ms'],
  ['assemble', 'assemble_ms'],
  ['reply', 'reply_ms'],
  ['other', 'other_ms'],
] as const;

/** The phases of a query, longest first, without those that took no measurable time. */
export function phasesOf(query: SlowQuery): readonly { name: string; ms: number }[] {
  return PHASES.map(([name, member]) => ({ name, ms: query[member] ?? 0 }))
    .filter(({ ms }) => ms > 0)
    .sort((a, b) => b.ms - a.ms);
}

const KIND_TEXTS: Readonly<Record<SlowQuery['kind'], string>> = {
  vector: 'by vector',
  id: 'by id',
  multi_vector: 'by multi-vector',
  text: 'by words',
  sparse: 'by sparse vector',
  embed: 'by text',
  recommend: 'by examples',
  discover: 'discovery',
  fusion: 'fusion',
  continued: 'next page',
  batch: 'batch',
};

/** What was asked, in a few words, such as `by vector, 10 results, filter`. */
export function describeQuery(query: SlowQuery): string {
  const { kind, query_count: count, top_k: topK, limit, filter } = query;
  const size = topK ?? limit;
  return [
    count === undefined ? KIND_TEXTS[kind] : `batch of ${formatCount(count)}`,
    ...(size === undefined ? [] : [pluralize(size, 'result')]),
    filter === undefined ? 'no filter' : 'filter',
  ].join(', ');
}
