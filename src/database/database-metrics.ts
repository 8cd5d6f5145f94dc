// The metrics of a database: counters and histograms that its observer updates, and gauges that are
// read when metrics are scraped.

import { type Metrics, PHASE_SECONDS_BUCKETS, SECONDS_BUCKETS } from '../platform/metrics.js';
import type { ScanStats } from './bulk/scan-stats.js';
import type { Database } from './database.js';
import type { DatabaseObserver } from './observer.js';

/** A batch has up to 1 024 queries; on an idle server it has one. */
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
/** Checkpoints and compactions write files of 64 MiB and more. */
const MAINTENANCE_SECONDS_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export function createDatabaseMetrics(metrics: Metrics): DatabaseObserver {
  return { ...queryMetrics(metrics), ...writeMetrics(metrics), ...cursorMetrics(metrics) };
}

function queryMetrics(
  metrics: Metrics,
): Pick<DatabaseObserver, 'queriesAnswered' | 'aggregated' | 'batchSearched'> {
  const countQueries = metrics.addCounter('sagitta_queries_total', 'Queries answered.');
  const countScanned = metrics.addCounter(
    'sagitta_rows_scanned_total',
    'Rows that queries scanned after filtering.',
  );
  const countRescored = metrics.addCounter(
    'sagitta_rows_rescored_total',
    'Rows whose exact score was computed.',
  );
  const observePhase = metrics.addHistogram(
    'sagitta_query_phase_seconds',
    'Duration of the phases of a query or of a group of queries: filter, wait (for the engine), search, assemble.',
    { buckets: PHASE_SECONDS_BUCKETS, labels: ['phase'] },
  );
  const observeBatch = metrics.addHistogram(
    'sagitta_engine_batch_queries',
    'Queries per engine batch.',
    { buckets: BATCH_BUCKETS },
  );
  const observeEngine = metrics.addHistogram(
    'sagitta_engine_batch_seconds',
    'Duration of engine batches.',
    { buckets: PHASE_SECONDS_BUCKETS },
  );
  const observeAggregation = metrics.addHistogram(
    'sagitta_aggregation_seconds',
    'Duration of aggregations: facets and stats of a request.',
    { buckets: PHASE_SECONDS_BUCKETS },
  );
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
  const countWritten = metrics.addCounter('sagitta_vectors_written_total', 'Vectors written.', {
    name: 'kind',
    values: ['inserted', 'updated'],
  });
  const countDeleted = metrics.addCounter('sagitta_vectors_deleted_total', 'Vectors deleted.');
  const countExpired = metrics.addCounter(
    'sagitta_vectors_expired_total',
    'Vectors deleted because they had expired.',
  );
  const observeCommit = metrics.addHistogram(
    'sagitta_commit_seconds',
    "Seconds from the hand-over of a collection's writes to the store until they are on disk.",
    { buckets: SECONDS_BUCKETS },
  );
  const countCommitted = metrics.addCounter(
    'sagitta_writes_committed_total',
    'Requests whose writes were committed; several may share a commit.',
  );
  const countFailures = metrics.addCounter(
    'sagitta_commit_failures_total',
    'Commits that failed, for example because the disk was full.',
  );
  const observeCheckpoint = metrics.addHistogram(
    'sagitta_checkpoint_seconds',
    'Duration of checkpoints, which write full segments as files and trim the log.',
    { buckets: MAINTENANCE_SECONDS_BUCKETS },
  );
  const observeCompaction = metrics.addHistogram(
    'sagitta_compaction_seconds',
    'Duration of compactions, which merge small segments and drop removed rows.',
    { buckets: MAINTENANCE_SECONDS_BUCKETS },
  );
  const countGone = metrics.addCounter(
    'sagitta_rows_compacted_total',
    'Deleted and replaced rows that compactions have removed.',
  );
  const countMaintenanceFailures = metrics.addCounter(
    'sagitta_maintenance_failures_total',
    'Checkpoints and compactions that failed; they are retried.',
  );
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
  const countIssued = metrics.addCounter('sagitta_cursors_issued_total', 'Cursors issued.');
  const countResumed = metrics.addCounter(
    'sagitta_cursors_resumed_total',
    'Pages that were read with a cursor.',
  );
  const countRefused = metrics.addCounter(
    'sagitta_cursors_refused_total',
    'Cursors that were rejected, by error code.',
    { name: 'code', values: ['cursor_invalid', 'cursor_mismatch', 'cursor_expired'] },
  );
  const countDecided = metrics.addCounter(
    'sagitta_idempotent_requests_total',
    'Requests with an idempotency key: kept (they ran), replayed, or rejected with an error code.',
    {
      name: 'outcome',
      values: ['kept', 'replayed', 'idempotency_in_flight', 'idempotency_key_reused'],
    },
  );
  return {
    cursorIssued: () => countIssued(1),
    cursorResumed: () => countResumed(1),
    cursorRejected: (code) => countRefused(1, { code }),
    idempotencyDecided: (outcome) => countDecided(1, { outcome }),
  } satisfies Partial<DatabaseObserver>;
}

/** Gauges of storage, the filter cache and the queue. Those of collections are in `server/telemetry/database-gauges.ts`. */
export function addStorageGauges(metrics: Metrics, database: Database): void {
  metrics.addGauge(
    'sagitta_engine_queue_queries',
    'Searches waiting for the engine.',
    () => database.queuedQueryCount,
  );
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
  metrics.addGauge('sagitta_segments', 'Segments of all collections.', read('segmentCount'));
  metrics.addGauge(
    'sagitta_rows',
    'Rows in all segments, including deleted and replaced rows that only snapshots see.',
    read('rowCount'),
  );
  metrics.addGauge(
    'sagitta_file_bytes',
    'Size of the segment files; clones count files that they share.',
    read('fileBytes'),
  );
  metrics.addGauge(
    'sagitta_log_bytes',
    'Size of the logs that no checkpoint has trimmed; a start replays them.',
    read('logBytes'),
  );
  const { filterCacheUse } = database;
  const readCache = (name: keyof typeof filterCacheUse) => () => database.filterCacheUse[name];
  metrics.addGauge(
    'sagitta_filter_cache_bytes',
    'Size of cached filter results.',
    readCache('bytesUsed'),
  );
  metrics.addGauge(
    'sagitta_filter_cache_hits_total',
    'Segments whose filter result was in the cache.',
    readCache('hitCount'),
  );
  metrics.addGauge(
    'sagitta_filter_cache_misses_total',
    'Segments for which a filter was evaluated, in full or for new rows.',
    readCache('missCount'),
  );
}

/** Exports and joins. */
function addScanGauges(metrics: Metrics, stats: ScanStats): void {
  const read = (name: keyof ScanStats & `${string}${'Count' | 'Left'}`) => () => stats[name];
  metrics.addGauge('sagitta_exports_in_progress', 'Exports in progress.', read('scanCount'));
  metrics.addGauge('sagitta_joins_in_progress', 'Joins in progress.', read('joinCount'));
  metrics.addGauge(
    'sagitta_export_rows_remaining',
    'Rows that the exports in progress have not sent yet.',
    read('scanRowsLeft'),
  );
  metrics.addGauge(
    'sagitta_join_rows_remaining',
    'Rows that the joins in progress have not joined yet.',
    read('joinRowsLeft'),
  );
  metrics.addGauge('sagitta_export_rows_total', 'Rows exported.', read('scannedRowCount'));
  metrics.addGauge('sagitta_join_rows_total', 'Rows joined.', read('joinedRowCount'));
}
