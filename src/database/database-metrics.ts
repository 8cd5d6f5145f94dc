// The metrics of a database: counters and histograms that its observer updates, and gauges that are
// read when metrics are scraped.

import type { Metrics } from '../platform/metrics.js';
import type { ScanStats } from './bulk/scan-stats.js';
import type { Database } from './database.js';
import type { DatabaseObserver } from './observer.js';

export function createDatabaseMetrics(metrics: Metrics): DatabaseObserver {
  return { ...queryMetrics(metrics), ...writeMetrics(metrics), ...cursorMetrics(metrics) };
}

function queryMetrics(
  metrics: Metrics,
): Pick<DatabaseObserver, 'queriesAnswered' | 'aggregated' | 'batchSearched'> {
  const countQueries = metrics.addCounter('sagitta_queries_total');
  const countScanned = metrics.addCounter('sagitta_rows_scanned_total');
  const countRescored = metrics.addCounter('sagitta_rows_rescored_total');
  const observePhase = metrics.addHistogram('sagitta_query_phase_seconds');
  const observeBatch = metrics.addHistogram('sagitta_engine_batch_queries');
  const observeEngine = metrics.addHistogram('sagitta_engine_batch_seconds');
  const observeAggregation = metrics.addHistogram('sagitta_aggregation_seconds');
  const phases = {
    filter: { phase: 'filter' },
    wait: { phase: 'wait' },
    search: { phase: 'search' },
    assemble: { phase: 'assemble' },
  };
  return {
    queriesAnswered(count, { filterMs, waitMs, searchMs, assembleMs }, work) {
      countQueries(count);
      countScanned(work.rowsScanned);
      countRescored(work.candidatesRescored);
      observePhase(filterMs / 1000, phases.filter);
      observePhase(waitMs / 1000, phases.wait);
      observePhase(searchMs / 1000, phases.search);
      observePhase(assembleMs / 1000, phases.assemble);
    },
    aggregated: (milliseconds) => observeAggregation(milliseconds / 1000),
    batchSearched(queryCount, milliseconds) {
      observeBatch(queryCount);
      observeEngine(milliseconds / 1000);
    },
  };
}

function writeMetrics(metrics: Metrics) {
  const countWritten = metrics.addCounter('sagitta_vectors_written_total');
  const countDeleted = metrics.addCounter('sagitta_vectors_deleted_total');
  const countExpired = metrics.addCounter('sagitta_vectors_expired_total');
  const observeCommit = metrics.addHistogram('sagitta_commit_seconds');
  const countCommitted = metrics.addCounter('sagitta_writes_committed_total');
  const countFailures = metrics.addCounter('sagitta_commit_failures_total');
  const observeCheckpoint = metrics.addHistogram('sagitta_checkpoint_seconds');
  const observeCompaction = metrics.addHistogram('sagitta_compaction_seconds');
  const countGone = metrics.addCounter('sagitta_rows_compacted_total');
  const countMaintenanceFailures = metrics.addCounter('sagitta_maintenance_failures_total');
  return {
    vectorsWritten(insertedCount, updatedCount) {
      countWritten(insertedCount, { kind: 'inserted' });
      countWritten(updatedCount, { kind: 'updated' });
    },
    vectorsDeleted: (count) => countDeleted(count),
    vectorsExpired: (count) => countExpired(count),
    writesCommitted(writeCount, milliseconds) {
      countCommitted(writeCount);
      observeCommit(milliseconds / 1000);
    },
    commitFailed: () => countFailures(1),
    checkpointEnded: (milliseconds) => observeCheckpoint(milliseconds / 1000),
    compactionEnded(milliseconds, goneCount) {
      observeCompaction(milliseconds / 1000);
      countGone(goneCount);
    },
    maintenanceFailed: () => countMaintenanceFailures(1),
  } satisfies Partial<DatabaseObserver>;
}

/** Cursors and idempotency keys. */
function cursorMetrics(metrics: Metrics) {
  const countIssued = metrics.addCounter('sagitta_cursors_issued_total');
  const countResumed = metrics.addCounter('sagitta_cursors_resumed_total');
  const countRefused = metrics.addCounter('sagitta_cursors_refused_total');
  const countDecided = metrics.addCounter('sagitta_idempotent_requests_total');
  return {
    cursorIssued: () => countIssued(1),
    cursorResumed: () => countResumed(1),
    cursorRejected: (code) => countRefused(1, { code }),
    idempotencyDecided: (outcome) => countDecided(1, { outcome }),
  } satisfies Partial<DatabaseObserver>;
}

/** Gauges of storage, the filter cache and the queue. Those of collections are in `server/telemetry/database-gauges.ts`. */
export function addStorageGauges(metrics: Metrics, database: Database): void {
  metrics.addReading('sagitta_engine_queue_queries', () => database.queuedQueryCount);
  addScanGauges(metrics, database.scanStats);
  let use: ReturnType<Database['storageUse']> | undefined;
  // A scrape reads all gauges in one iteration of the event loop, so that one sum serves them.
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

/** Exports and joins. */
function addScanGauges(metrics: Metrics, stats: ScanStats): void {
  const read = (name: keyof ScanStats & `${string}${'Count' | 'Left'}`) => () => stats[name];
  metrics.addReading('sagitta_exports_in_progress', read('scanCount'));
  metrics.addReading('sagitta_joins_in_progress', read('joinCount'));
  metrics.addReading('sagitta_export_rows_remaining', read('scanRowsLeft'));
  metrics.addReading('sagitta_join_rows_remaining', read('joinRowsLeft'));
  metrics.addReading('sagitta_export_rows_total', read('scannedRowCount'));
  metrics.addReading('sagitta_join_rows_total', read('joinedRowCount'));
}
