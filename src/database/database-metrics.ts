// The metrics of a database: counters and histograms that it reports, and values that are read when metrics are
// scraped.

import {
  type CounterName,
  DATABASE_METRICS,
  type HistogramName,
  type MetricEntry,
} from '../platform/metric-table.js';
import type { Metrics } from '../platform/metrics.js';
import type { DatabaseObserver } from './api/observer.js';
import type { ScanStats } from './bulk/scan-stats.js';
import type { Database } from './database.js';

/** Registers the counters and histograms of a database. */
export function createDatabaseMetrics(metrics: Metrics): DatabaseObserver {
  const reported = Object.entries<MetricEntry>(DATABASE_METRICS).filter(
    ([, { isRead }]) => !isRead,
  );
  const namesOf = (type: MetricEntry['type']) =>
    reported.filter(([, entry]) => entry.type === type).map(([name]) => name);
  const counters = new Map(
    namesOf('counter').map((name) => [name, metrics.addCounter(name as CounterName)]),
  );
  const histograms = new Map(
    namesOf('histogram').map((name) => [name, metrics.addHistogram(name as HistogramName)]),
  );
  return {
    count: (name, amount, labels) => counters.get(name)!(amount, labels),
    observe: (name, value, labels) => histograms.get(name)!(value, labels),
    written: (collectionId, rowCount) => metrics.traffic.written(collectionId, rowCount),
  };
}

/**
 * Registers values of storage, the filter cache and the queue; `server/telemetry/database-gauges.ts` has those of
 * collections.
 */
export function addStorageGauges(metrics: Metrics, database: Database): void {
  metrics.addReading('sagitta_engine_queue_queries', () => database.queuedQueryCount);
  addScanGauges(metrics, database.scanStats);
  let use: ReturnType<Database['storageUse']> | undefined;
  // A scrape reads all values in one iteration of the event loop, so that one sum serves them all.
  const read = (name: keyof ReturnType<Database['storageUse']>) => () => {
    if (use === undefined) {
      use = database.storageUse();
      setImmediate(() => {
        use = undefined;
      });
    }
    return use[name];
  };
  metrics.addReading('sagitta_segments', read('segmentCount'));
  metrics.addReading('sagitta_rows', read('rowCount'));
  metrics.addReading('sagitta_file_bytes', read('fileBytes'));
  metrics.addReading('sagitta_log_bytes', read('logBytes'));
  const { filterCacheUse } = database;
  const readCache = (name: keyof typeof filterCacheUse) => () => database.filterCacheUse[name];
  metrics.addReading('sagitta_filter_cache_bytes', readCache('bytesUsed'));
  metrics.addReading('sagitta_filter_cache_hits_total', readCache('hitCount'));
  metrics.addReading('sagitta_filter_cache_misses_total', readCache('missCount'));
}

function addScanGauges(metrics: Metrics, stats: ScanStats): void {
  const read = (name: keyof ScanStats & `${string}${'Count' | 'Left'}`) => () => stats[name];
  metrics.addReading('sagitta_exports_in_progress', read('scanCount'));
  metrics.addReading('sagitta_joins_in_progress', read('joinCount'));
  metrics.addReading('sagitta_export_rows_remaining', read('scanRowsLeft'));
  metrics.addReading('sagitta_join_rows_remaining', read('joinRowsLeft'));
  metrics.addReading('sagitta_export_rows_total', read('scannedRowCount'));
  metrics.addReading('sagitta_join_rows_total', read('joinedRowCount'));
}
