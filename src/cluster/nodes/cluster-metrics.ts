// The gauges and counters of a node of a cluster.

import type { Metrics } from '../../platform/metrics.js';
import type { FetchedBlock } from '../../storage/block-source.js';
import type { PartialFilesUse } from '../../storage/partial-files.js';
import type { DiskStore } from '../../storage/store.js';
import type { ClusterNode } from './cluster-node.js';

export function addClusterGauges(
  metrics: Metrics,
  node: ClusterNode,
  store: Pick<DiskStore, 'partialUse'>,
): void {
  const { health } = node;
  metrics.addReading('sagitta_cluster_leader', () => (node.isLeader ? 1 : 0));
  metrics.addReading('sagitta_cluster_collections_owned', () => node.self.collectionCount);
  metrics.addReading('sagitta_cluster_collections_held', () => health.placementCounts.held);
  metrics.addReading('sagitta_cluster_collections_moving', () => health.placementCounts.moving);
  metrics.addReading('sagitta_cluster_collections_short', () => health.placementCounts.short);
  metrics.addReading('sagitta_cluster_leader_known', () => (health.status.leader === null ? 0 : 1));
  metrics.addReading('sagitta_cluster_nodes', () => node.present.length);
  metrics.addReading('sagitta_cluster_logs_failed', () => health.failedLogCount);
  metrics.addReading('sagitta_cluster_lag_seconds', () => health.lag.seconds);
  metrics.addReading('sagitta_cluster_lag_messages', () => health.lag.messages);
  metrics.addReading('sagitta_cluster_take_overs_total', () => health.counts.takeOvers);
  metrics.addReading('sagitta_cluster_snapshots_total', () => health.counts.snapshots);
  metrics.addReading(
    'sagitta_cluster_snapshot_failures_total',
    () => health.counts.snapshotFailures,
  );
  metrics.addReading('sagitta_cluster_durability_verified', () =>
    health.status.durability?.state === 'verified' ? 1 : 0,
  );
  metrics.addReading('sagitta_cluster_archive_lag_seconds', () => health.archiveLagSeconds);
  metrics.addReading('sagitta_cluster_repaired_records_total', () => health.counts.repairedRecords);
  if (store.partialUse === null) return;
  const read = (name: keyof PartialFilesUse) => () => store.partialUse?.[name] ?? 0;
  metrics.addReading('sagitta_cluster_kept_bytes', read('keptBytes'));
  metrics.addReading('sagitta_cluster_cached_bytes', read('cachedBytes'));
  metrics.addReading('sagitta_cluster_cache_limit_bytes', read('cacheBytesMax'));
}

/** Returns what receives each block that the store fetches of files that this node keeps in part. */
export function countFetchedBlocks(metrics: Metrics): (fetched: FetchedBlock) => void {
  const observe = metrics.addHistogram('sagitta_cluster_fetch_seconds');
  const count = metrics.addCounter('sagitta_cluster_fetched_bytes_total');
  return ({ byteLength, seconds }) => {
    observe(seconds);
    count(byteLength);
  };
}
