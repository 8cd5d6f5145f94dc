// The used shares of limits: every gauge of `/metrics` with a limit in `/limits`, and the memory and disk of the
// machine.

import type { Limits } from '@sagitta/client';
import { type MetricSamples, sumOf } from '../../api/metrics-text.js';
import { formatBytes, formatCount } from '../../ui/format.js';

export interface LimitUsage {
  readonly label: string;
  readonly used: string;
  readonly limit: string;
  /** The used share of the limit: 0 to 1, or more if it is exceeded. */
  readonly share: number;
}

interface LimitedGauge {
  readonly label: string;
  readonly gauge: string;
  readonly limit: string;
  readonly format: (value: number) => string;
}

const LIMITED: readonly LimitedGauge[] = [
  {
    label: 'Collections',
    gauge: 'sagitta_collections',
    limit: 'collections_max',
    format: formatCount,
  },
  {
    label: 'Connections',
    gauge: 'sagitta_http_connections',
    limit: 'connections_max',
    format: formatCount,
  },
  {
    label: 'Request bodies',
    gauge: 'sagitta_http_body_bytes_in_flight',
    limit: 'body_bytes_in_flight_max',
    format: formatBytes,
  },
  {
    label: 'Replies',
    gauge: 'sagitta_http_reply_bytes_in_flight',
    limit: 'reply_bytes_in_flight_max',
    format: formatBytes,
  },
  {
    label: 'Filter cache',
    gauge: 'sagitta_filter_cache_bytes',
    limit: 'filter_cache_bytes_max',
    format: formatBytes,
  },
  {
    label: 'Waiting requests',
    gauge: 'sagitta_http_requests_waiting',
    limit: 'queued_requests_max',
    format: formatCount,
  },
  {
    label: 'Waiting queries',
    gauge: 'sagitta_engine_queue_queries',
    limit: 'queued_queries_max',
    format: formatCount,
  },
  {
    label: 'Waiting tasks',
    gauge: 'sagitta_pool_tasks_waiting',
    limit: 'queued_tasks_max',
    format: formatCount,
  },
];

/** Leaves out gauges and limits that the server does not have. */
export function limitUsageOf(metrics: MetricSamples, limits: Limits): readonly LimitUsage[] {
  return [...machineUsageOf(metrics), ...settingUsageOf(metrics, limits)];
}

function machineUsageOf(metrics: MetricSamples): readonly LimitUsage[] {
  const memory = sumOf(metrics, 'process_resident_memory_bytes');
  const disk = sumOf(metrics, 'sagitta_disk_total_bytes');
  const free = sumOf(metrics, 'sagitta_disk_free_bytes');
  const used = disk === undefined || free === undefined ? undefined : disk - free;
  return [
    { label: 'Memory', value: memory, most: sumOf(metrics, 'process_memory_limit_bytes') },
    { label: 'Disk', value: used, most: disk },
  ].flatMap(({ label, value, most }) =>
    value === undefined || most === undefined || most === 0
      ? []
      : { label, used: formatBytes(value), limit: formatBytes(most), share: value / most },
  );
}

function settingUsageOf(metrics: MetricSamples, limits: Limits): readonly LimitUsage[] {
  return LIMITED.flatMap(({ label, gauge, limit, format }) => {
    const used = sumOf(metrics, gauge);
    const most = limits[limit];
    if (used === undefined || most === undefined || most === 0) return [];
    return { label, used: format(used), limit: format(most), share: used / most };
  });
}
