// The gauges and counters of a node of a cluster.

import type { Metrics } from '../../platform/metrics.js';
import type { ClusterNode } from './cluster-node.js';

export function addClusterGauges(metrics: Metrics, node: ClusterNode): void {
  metrics.addReading('sagitta_cluster_leader', () => (node.isLeader ? 1 : 0));
  metrics.addReading('sagitta_cluster_collections_owned', () => node.self.collectionCount);
  metrics.addReading('sagitta_cluster_collections_held', () => node.placementCounts.held);
  metrics.addReading('sagitta_cluster_collections_moving', () => node.placementCounts.moving);
  metrics.addReading('sagitta_cluster_collections_short', () => node.placementCounts.short);
  metrics.addReading('sagitta_cluster_leader_known', () => (node.status.leader === null ? 0 : 1));
  metrics.addReading('sagitta_cluster_nodes', () => node.present.length);
  metrics.addReading('sagitta_cluster_logs_failed', () => node.failedLogCount);
  metrics.addReading('sagitta_cluster_lag_seconds', () => node.lag.seconds);
  metrics.addReading('sagitta_cluster_lag_messages', () => node.lag.messages);
  metrics.addReading('sagitta_cluster_take_overs_total', () => node.counts.takeOvers);
  metrics.addReading('sagitta_cluster_snapshots_total', () => node.counts.snapshots);
  metrics.addReading('sagitta_cluster_snapshot_failures_total', () => node.counts.snapshotFailures);
  metrics.addReading('sagitta_cluster_durability_verified', () =>
    node.status.durability?.state === 'verified' ? 1 : 0,
  );
  metrics.addReading('sagitta_cluster_archive_lag_seconds', () => node.archiveLagSeconds);
  metrics.addReading('sagitta_cluster_repaired_records_total', () => node.repairedRecordCount);
}
