// Gauges and counters of a node of a cluster.

import type { Metrics } from '../../platform/metrics.js';
import type { ClusterNode } from './cluster-node.js';

export function addClusterGauges(metrics: Metrics, node: ClusterNode): void {
  metrics.addGauge(
    'sagitta_cluster_leader',
    'Whether this node carries out the changes of the catalogue: 1 or 0.',
    () => (node.isLeader ? 1 : 0),
  );
  metrics.addGauge(
    'sagitta_cluster_collections_owned',
    'Collections whose writes this node carries out.',
    () => node.self.collectionCount,
  );
  metrics.addGauge(
    'sagitta_cluster_collections_held',
    'Collections whose rows this node has.',
    () => node.placementCounts.held,
  );
  metrics.addGauge(
    'sagitta_cluster_collections_moving',
    'Collections that a node is bringing in.',
    () => node.placementCounts.moving,
  );
  metrics.addGauge(
    'sagitta_cluster_collections_short',
    'Collections that fewer nodes hold and serve than they are to be on.',
    () => node.placementCounts.short,
  );
  metrics.addGauge(
    'sagitta_cluster_leader_known',
    'Whether this node knows which one carries out the changes of the catalogue: 1 or 0.',
    () => (node.status.leader === null ? 0 : 1),
  );
  metrics.addGauge(
    'sagitta_cluster_nodes',
    'Nodes of the cluster that this one has heard of lately, itself included.',
    () => node.present.length,
  );
  metrics.addGauge(
    'sagitta_cluster_logs_failed',
    'Logs that this node cannot follow at the moment.',
    () => node.failedLogCount,
  );
  metrics.addGauge(
    'sagitta_cluster_lag_seconds',
    'Since when this node has not applied what the owners of logs had; 0 when it has everything.',
    () => node.lag.seconds,
  );
  metrics.addGauge(
    'sagitta_cluster_lag_messages',
    'Messages of logs that their owners have and this node has not applied yet.',
    () => node.lag.messages,
  );
  metrics.addGauge(
    'sagitta_cluster_take_overs_total',
    'Logs that this node has taken over.',
    () => node.counts.takeOvers,
  );
  metrics.addGauge(
    'sagitta_cluster_checkpoints_total',
    'Checkpoints of logs that this node has made.',
    () => node.counts.checkpoints,
  );
  metrics.addGauge(
    'sagitta_cluster_checkpoint_failures_total',
    'Checkpoints of logs that this node could not make.',
    () => node.counts.checkpointFailures,
  );
  metrics.addGauge(
    'sagitta_cluster_durability_verified',
    'Whether the NATS servers were found to keep what they acknowledge: 1 or 0.',
    () => (node.status.durability?.state === 'verified' ? 1 : 0),
  );
  metrics.addGauge(
    'sagitta_cluster_archive_lag_seconds',
    'For how long what this node has committed has not been archived; 0 when all is.',
    () => node.archiveLagSeconds,
  );
  metrics.addGauge(
    'sagitta_cluster_repaired_records_total',
    'Records that logs did not have, and that this node has read from the archive.',
    () => node.repairedRecordCount,
  );
}
