// The table of metrics: type, labels and meaning of each. Code registers metrics by name, and docs/metrics.md is
// generated from the table.

import { ERROR_TITLES, type ErrorCode } from '../common/errors.js';
import { PROBLEM_CODES, PROBLEM_MEANINGS } from '../common/problems.js';

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /**
   * Known values by label name. Counters start at 0 for them, so that a rate can be computed from the first increment
   * on. Each label has few values: never an id or a principal.
   */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds, in the unit at the end of the name. */
  readonly buckets?: readonly number[];
  /** Whether the value of a counter is read at each scrape, because its total is kept elsewhere anyway. */
  readonly isRead?: true;
  readonly meaning: string;
}

/** For requests, from a cached reply to the default deadline. */
const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;
/** For phases of a query, which may take only tens of microseconds. */
const PHASE_SECONDS = [
  0.000025, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
] as const;
/** For checkpoints and compactions, which write files of 64 MiB and more. */
const MAINTENANCE_SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;
/** A batch contains up to 1 024 queries; on an idle server it contains one. */
const BATCH_QUERIES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024] as const;

/** Errors that occur only before the service listens. */
const CODES_WITHOUT_REPLY: readonly string[] = [
  'configuration_invalid',
  'data_directory_locked',
  'data_corrupt',
] satisfies ErrorCode[];
const CODES_OF_REPLIES = Object.keys(ERROR_TITLES).filter(
  (code) => !CODES_WITHOUT_REPLY.includes(code),
);

const HTTP = {
  sagitta_http_request_duration_seconds: {
    type: 'histogram',
    labels: { method: [], route: [], status: [] },
    buckets: SECONDS,
    meaning:
      'From the request head to the end of the reply; `_count` is the number of requests. `route` contains placeholders (`/collections/{id}/query`) and is the same with and without `/v1`; unknown paths and the pages under `/docs` and `/console` are `other`. Status `closed` means that the client disconnected first.',
  },
  sagitta_http_requests_in_flight: {
    type: 'gauge',
    meaning: 'Requests whose reply has not been sent completely, including the current scrape.',
  },
  sagitta_http_refusals_total: {
    type: 'counter',
    labels: { code: CODES_OF_REPLIES },
    meaning:
      'Requests answered with an error, by error code (`rate_limited`, `overloaded`, `invalid_filter`, …).',
  },
  sagitta_http_requests_waiting: {
    type: 'gauge',
    meaning:
      'Requests that wait until their work begins; limited by `SAGITTA_QUEUED_REQUESTS_MAX`.',
  },
  sagitta_streams_in_flight: {
    type: 'gauge',
    meaning: 'Streaming request bodies and replies in progress.',
  },
  sagitta_stream_rows_total: {
    type: 'counter',
    labels: { direction: ['in', 'out'] },
    meaning:
      'Rows of streams: `in`, written from request bodies and durable; `out`, sent in replies. Rows skipped on a retry with an idempotency key are not counted.',
  },
  sagitta_http_connections: { type: 'gauge', meaning: 'Open connections.' },
  sagitta_http_body_bytes_in_flight: {
    type: 'gauge',
    meaning:
      'Request bodies being received or processed; limited by `SAGITTA_BODY_BYTES_IN_FLIGHT_MAX`.',
  },
  sagitta_http_reply_bytes_in_flight: {
    type: 'gauge',
    meaning:
      'Replies being written or not yet received by their clients; limited by `SAGITTA_REPLY_BYTES_IN_FLIGHT_MAX`.',
  },
  sagitta_event_loop_delay_seconds: {
    type: 'gauge',
    meaning: 'Recent delay of the event loop of the main thread; 0 while the server is idle.',
  },
  sagitta_tls_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    meaning: "Expiry of the server's certificate, Unix time. Only with TLS.",
  },
} as const;

const QUERIES = {
  sagitta_queries_total: {
    type: 'counter',
    meaning: 'Queries answered. Each page counts as one, as does each query of a batch.',
  },
  sagitta_query_phase_seconds: {
    type: 'histogram',
    labels: { phase: ['filter', 'wait', 'search', 'assemble'] },
    buckets: PHASE_SECONDS,
    meaning:
      'Time per phase of a query, or of a group of queries from a batch that are searched together: `filter`, `wait` (for the engine, while it was busy), `search` (in the engine), `assemble`. The `Server-Timing` header has the same values.',
  },
  sagitta_aggregation_seconds: {
    type: 'histogram',
    buckets: PHASE_SECONDS,
    meaning:
      'Duration of the facets and stats of a request, alone or in a query; `_count` is their number.',
  },
  sagitta_engine_batch_queries: {
    type: 'histogram',
    buckets: BATCH_QUERIES,
    meaning: 'Queries per engine batch.',
  },
  sagitta_engine_batch_seconds: {
    type: 'histogram',
    buckets: PHASE_SECONDS,
    meaning: 'Duration of engine batches.',
  },
  sagitta_engine_queue_queries: {
    type: 'gauge',
    meaning: 'Queries waiting for the engine; limited by `SAGITTA_QUEUED_QUERIES_MAX`.',
  },
  sagitta_pool_tasks_waiting: {
    type: 'gauge',
    meaning: 'Tasks (filters, large bodies, segments) waiting for a worker thread.',
  },
  sagitta_rows_scanned_total: {
    type: 'counter',
    meaning: 'Rows searched by queries, after filtering.',
  },
  sagitta_rows_rescored_total: {
    type: 'counter',
    meaning: 'Rows whose exact score was computed because the scan could not exclude them.',
  },
  sagitta_exports_in_progress: { type: 'gauge', meaning: 'Exports in progress.' },
  sagitta_export_rows_total: { type: 'counter', isRead: true, meaning: 'Rows sent by exports.' },
  sagitta_export_rows_remaining: {
    type: 'gauge',
    meaning: 'Rows that running exports have yet to send.',
  },
  sagitta_joins_in_progress: { type: 'gauge', meaning: 'Joins in progress.' },
  sagitta_join_rows_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Rows for which joins have found matches.',
  },
  sagitta_join_rows_remaining: {
    type: 'gauge',
    meaning:
      'Rows that running joins have yet to process; divided by the rate of `sagitta_join_rows_total`, the remaining time.',
  },
  sagitta_filter_cache_bytes: {
    type: 'gauge',
    meaning: 'Size of cached filter results; limited by `SAGITTA_FILTER_CACHE_BYTES_MAX`.',
  },
  sagitta_filter_cache_hits_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Segments whose filter result was cached.',
  },
  sagitta_filter_cache_misses_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Segments, or new rows of a segment, for which a filter was evaluated.',
  },
  sagitta_engine_fallbacks_total: {
    type: 'counter',
    isRead: true,
    meaning:
      'Segment searches that the reference engine answered instead of the tensor engine. Only with the engines wasm and tensorflow.',
  },
  sagitta_device_fallback_queries_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Queries answered partly by the CPU. Only with the engine cuda.',
  },
  sagitta_device_undecided_queries_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Of these, queries that a device could not decide. Only with the engine cuda.',
  },
  sagitta_device_repeated_queries_total: {
    type: 'counter',
    isRead: true,
    meaning:
      'Queries that a device scanned again, because many rows are close together. Only with the engine cuda.',
  },
  sagitta_device_coarse_queries_total: {
    type: 'counter',
    isRead: true,
    meaning:
      'Queries that a device answered by coarse codes, which take a quarter of the bytes. Only with the engine cuda.',
  },
  sagitta_device_head_queries_total: {
    type: 'counter',
    isRead: true,
    meaning:
      'Queries that a device answered by head tiles, which take a quarter or an eighth of the bytes and products. Only with the engine cuda.',
  },
  sagitta_device_abandoned_queries_total: {
    type: 'counter',
    isRead: true,
    meaning:
      'Queries for which a device tried coarse codes or head tiles but continued with int8 codes because too few rows were excluded. Only with the engine cuda.',
  },
  sagitta_device_uploaded_bytes_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Bytes of rows uploaded to devices. Only with the engine cuda.',
  },
  sagitta_device_losses_total: {
    type: 'counter',
    isRead: true,
    meaning: 'Number of times a device was lost. Only with the engine cuda.',
  },
} as const;

const DATA = {
  sagitta_collections: {
    type: 'gauge',
    meaning: 'Collections, including those that only other nodes of a cluster hold.',
  },
  sagitta_collections_loading: {
    type: 'gauge',
    meaning:
      'Collections that have not been loaded yet since the start. Requests for them wait; the gauges of vectors, rows and bytes do not include them yet.',
  },
  sagitta_collections_failed: {
    type: 'gauge',
    meaning: 'Collections that cannot be served; `/readyz` gives the reasons.',
  },
  sagitta_vectors: { type: 'gauge', meaning: 'Vectors in all collections that the process holds.' },
  sagitta_segments: { type: 'gauge', meaning: 'Segments of all collections.' },
  sagitta_rows: {
    type: 'gauge',
    meaning:
      'Rows in all segments, including deleted and replaced rows that only snapshots see; compaction removes those after the retention.',
  },
  sagitta_host_bytes: { type: 'gauge', meaning: 'Host memory used by all collections.' },
  sagitta_mapped_bytes: {
    type: 'gauge',
    meaning:
      'Mapped files of all collections, whose memory the system can take back; not part of `sagitta_host_bytes`.',
  },
  sagitta_device_bytes: { type: 'gauge', meaning: 'Device memory used by all collections.' },
  sagitta_file_bytes: {
    type: 'gauge',
    meaning:
      'Size of the segment files of all collections; clones count files that they share with their originals.',
  },
  sagitta_disk_free_bytes: {
    type: 'gauge',
    meaning: 'Free space of the disk with the data directory.',
  },
  sagitta_disk_total_bytes: { type: 'gauge', meaning: 'Size of that disk.' },
  sagitta_disk_silent_seconds: {
    type: 'gauge',
    meaning:
      'Time since that disk last answered a synced write of a few bytes, which it is asked for every 5 seconds; more than 10 means that it is stalled.',
  },
  sagitta_store_bytes: {
    type: 'gauge',
    meaning:
      'Size of the journal files, which contain the catalogue and the logs; data in them that is no longer needed counts until the next base frees it.',
  },
  sagitta_log_bytes: {
    type: 'gauge',
    meaning: 'Bytes of log that no checkpoint has trimmed yet: what a restart has to replay.',
  },
  sagitta_vectors_written_total: {
    type: 'counter',
    labels: { kind: ['inserted', 'updated'] },
    meaning: 'Vectors written: `inserted`, `updated`.',
  },
  sagitta_vectors_deleted_total: { type: 'counter', meaning: 'Vectors deleted.' },
  sagitta_vectors_expired_total: {
    type: 'counter',
    meaning: 'Vectors deleted because they had expired.',
  },
  sagitta_commit_seconds: {
    type: 'histogram',
    buckets: SECONDS,
    meaning:
      "From the submission of a collection's writes to the store until they are on disk; `_count` is the number of commits.",
  },
  sagitta_writes_committed_total: {
    type: 'counter',
    meaning: 'Requests whose writes are on disk; several may share a commit.',
  },
  sagitta_commit_failures_total: {
    type: 'counter',
    meaning: 'Commits that failed, for example because the disk is full.',
  },
  sagitta_checkpoint_seconds: {
    type: 'histogram',
    buckets: MAINTENANCE_SECONDS,
    meaning: 'Duration of checkpoints, which write full segments to files and trim the log.',
  },
  sagitta_compaction_seconds: {
    type: 'histogram',
    buckets: MAINTENANCE_SECONDS,
    meaning:
      'Duration of compactions, which merge segments that are small or have many deleted rows.',
  },
  sagitta_rows_compacted_total: {
    type: 'counter',
    meaning: 'Deleted rows removed by compactions.',
  },
  sagitta_maintenance_failures_total: {
    type: 'counter',
    meaning: 'Checkpoints and compactions that failed; they are retried.',
  },
  sagitta_cursors_issued_total: {
    type: 'counter',
    meaning: 'Cursors issued by queries and lists of vectors.',
  },
  sagitta_cursors_resumed_total: { type: 'counter', meaning: 'Pages read with a cursor.' },
  sagitta_cursors_refused_total: {
    type: 'counter',
    labels: { code: ['cursor_invalid', 'cursor_mismatch', 'cursor_expired'] },
    meaning:
      'Cursors rejected, by error code: `cursor_invalid`, `cursor_mismatch`, `cursor_expired`.',
  },
  sagitta_idempotent_requests_total: {
    type: 'counter',
    labels: { outcome: ['kept', 'replayed', 'idempotency_in_flight', 'idempotency_key_reused'] },
    meaning:
      'Requests with an idempotency key: `kept` (executed, and the reply stored), `replayed`, `idempotency_in_flight`, `idempotency_key_reused`.',
  },
} as const;

const EMBEDDING = {
  sagitta_embedding_calls_total: {
    type: 'counter',
    labels: { outcome: ['success', 'failure', 'rejected'] },
    meaning:
      'Calls to embedding endpoints: `success`, `failure`, and `rejected` (not made, because the endpoint kept failing).',
  },
  sagitta_embedding_texts_total: { type: 'counter', meaning: 'Texts that became vectors.' },
  sagitta_embedding_call_seconds: {
    type: 'histogram',
    buckets: SECONDS,
    meaning: 'Duration of calls to embedding endpoints.',
  },
} as const;

const PROCESS = {
  sagitta_write_ready: {
    type: 'gauge',
    meaning:
      '1 if a write through this process would succeed now, else 0, as `GET /readyz?for=write` says.',
  },
  sagitta_problems: {
    type: 'gauge',
    labels: { code: PROBLEM_CODES },
    meaning: `1 for each problem that the process has at the moment, else 0, by code: ${PROBLEM_CODES.map((code) => `\`${code}\` (${PROBLEM_MEANINGS[code]})`).join(', ')}.`,
  },
  sagitta_build_info: {
    type: 'gauge',
    labels: { version: [], node: [], engine: [] },
    meaning: 'Always 1; the labels carry the information.',
  },
  process_start_time_seconds: { type: 'gauge', meaning: 'Start time of the process, Unix time.' },
  process_cpu_seconds_total: {
    type: 'counter',
    meaning: 'CPU time of all threads, user and system.',
  },
  process_resident_memory_bytes: { type: 'gauge', meaning: 'Resident memory.' },
  process_memory_limit_bytes: {
    type: 'gauge',
    meaning:
      'Memory that the process may use: the limit of its container, or the memory of the machine.',
  },
  process_open_fds: {
    type: 'gauge',
    meaning: 'Open file descriptors; 0 where the system does not report them.',
  },
  nodejs_heap_used_bytes: { type: 'gauge', meaning: 'Used JavaScript heap of the main thread.' },
  nodejs_external_memory_bytes: { type: 'gauge', meaning: 'Memory of buffers outside the heap.' },
  nodejs_eventloop_utilization: {
    type: 'gauge',
    meaning:
      'Share of the time since the last scrape in which the event loop of the main thread was busy, 0 to 1.',
  },
} as const;

const CLUSTER = {
  sagitta_cluster_leader: {
    type: 'gauge',
    meaning:
      '1 if this node carries out changes of the catalogue (collections, aliases, API keys), else 0. The sum over all nodes is 1, except while another node takes over.',
  },
  sagitta_cluster_leader_known: {
    type: 'gauge',
    meaning:
      '1 if this node knows which node carries out changes of the catalogue, else 0; changes that it receives then wait, and are refused after eight seconds.',
  },
  sagitta_cluster_collections_owned: {
    type: 'gauge',
    meaning:
      'Collections whose writes this node carries out. The sum over all nodes is the number of collections, except while another node takes over.',
  },
  sagitta_cluster_collections_held: {
    type: 'gauge',
    meaning: 'Collections whose rows the node holds.',
  },
  sagitta_cluster_collections_moving: {
    type: 'gauge',
    meaning: 'Collections that some node of the cluster is loading; the same on all nodes.',
  },
  sagitta_cluster_collections_short: {
    type: 'gauge',
    meaning:
      'Collections that fewer nodes serve than they should, as far as this node knows; the same on all nodes.',
  },
  sagitta_cluster_nodes: {
    type: 'gauge',
    meaning: 'Nodes that this one has heard from recently, including itself.',
  },
  sagitta_cluster_search_parts_total: {
    type: 'counter',
    labels: { outcome: ['found', 'failed'] },
    meaning:
      'Parts of searches that this node has asked others for: `found`, or `failed`, so that another node that keeps the segments was asked, or this node searched them itself.',
  },
  sagitta_cluster_fetch_seconds: {
    type: 'histogram',
    buckets: SECONDS,
    meaning:
      'From asking the shared files for a block of 1 MiB, which this node does not keep, to its arrival; `_count` is the number of blocks. Reads of cached blocks are not counted. Only with `SAGITTA_CLUSTER_FILE_COPIES`, as are the next four.',
  },
  sagitta_cluster_fetched_bytes_total: {
    type: 'counter',
    meaning: 'Size of the blocks that were fetched from the shared files.',
  },
  sagitta_cluster_cached_bytes: {
    type: 'gauge',
    meaning:
      'Fetched blocks on the disk. When they reach the limit, each new one replaces another.',
  },
  sagitta_cluster_cache_limit_bytes: {
    type: 'gauge',
    meaning: 'How much of the disk fetched blocks may take (`SAGITTA_CLUSTER_CACHE_BYTES`).',
  },
  sagitta_cluster_kept_bytes: {
    type: 'gauge',
    meaning:
      'What this node keeps of the loaded segment files that only other nodes keep as a whole: ids and columns of metadata.',
  },
  sagitta_cluster_logs_failed: {
    type: 'gauge',
    meaning:
      'Logs that this node cannot follow at the moment; the log of the process gives the reason.',
  },
  sagitta_cluster_lag_seconds: {
    type: 'gauge',
    meaning:
      'How long this node has lacked something that the owner of a log has; 0 when it has applied everything. Owners that the node does not hear from are not counted.',
  },
  sagitta_cluster_lag_messages: {
    type: 'gauge',
    meaning: 'Messages of logs that their owners have and this node has not applied yet.',
  },
  sagitta_cluster_take_overs_total: {
    type: 'counter',
    meaning: 'Take-overs of logs by this node, of the catalogue and of collections.',
  },
  sagitta_cluster_forwarded_requests_total: {
    type: 'counter',
    labels: { outcome: ['replied', 'failed'] },
    meaning:
      'Requests that this node has forwarded to owners of logs, or to nodes that hold collections which it does not: `replied`, or `failed` if the node could not be reached or did not reply.',
  },
  sagitta_cluster_snapshots_total: {
    type: 'counter',
    meaning: 'Snapshots that this node has taken of the logs that it owns.',
  },
  sagitta_cluster_snapshot_failures_total: {
    type: 'counter',
    meaning:
      'Snapshots of logs that failed on this node; the log is not trimmed until one succeeds.',
  },
  sagitta_cluster_durability_verified: {
    type: 'gauge',
    meaning:
      '1 if the NATS servers were found to sync every message (`SAGITTA_CLUSTER_MONITORS`), else 0.',
  },
  sagitta_cluster_archive_lag_seconds: {
    type: 'gauge',
    meaning:
      'How long commits of this node to the logs that it owns have waited to be archived in `SAGITTA_BLOBS`; 0 when all are. A few seconds are usual. While it grows, the logs are not trimmed.',
  },
  sagitta_cluster_repaired_records_total: {
    type: 'counter',
    meaning:
      'Records that were damaged or missing in a log and that this node has read from the archive instead.',
  },
} as const;

/** Metrics by section of the documentation. */
export const METRIC_SECTIONS = {
  HTTP: HTTP,
  'Queries and the engine': QUERIES,
  'Data and writes': DATA,
  Embedding: EMBEDDING,
  'The process': PROCESS,
  Cluster: CLUSTER,
} satisfies Record<string, Record<string, MetricEntry>>;

/** Metrics about a database and what is read from it. */
export const DATABASE_METRICS = { ...QUERIES, ...DATA };

export const METRIC_TABLE = { ...HTTP, ...QUERIES, ...DATA, ...EMBEDDING, ...PROCESS, ...CLUSTER };

type NamesOf<Type extends MetricEntry['type'], Table = typeof METRIC_TABLE> = {
  [name in keyof Table]: Table[name] extends { readonly type: Type } ? name : never;
}[keyof Table];
export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;

type ReadNames<Table> = {
  [name in keyof Table]: Table[name] extends { readonly isRead: true } ? name : never;
}[keyof Table];
/** Counters that the database updates itself; the others are read from it. */
export type DatabaseCounter = Exclude<
  NamesOf<'counter', typeof DATABASE_METRICS>,
  ReadNames<typeof DATABASE_METRICS>
>;
export type DatabaseHistogram = NamesOf<'histogram', typeof DATABASE_METRICS>;
