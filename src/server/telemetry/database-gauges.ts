// Gauges over all collections: one series each, regardless of the number of collections.

import type { Database } from '../../database/database.js';
import type { Metrics } from '../../platform/metrics.js';

export function addDatabaseGauges(metrics: Metrics, database: Database): void {
  let sums: ReturnType<typeof sumCollections> | undefined;
  // A scrape reads all gauges in one iteration of the event loop, which share one pass.
  const read = (name: keyof ReturnType<typeof sumCollections>) => () => {
    if (sums === undefined) {
      sums = sumCollections(database);
      setImmediate(() => {
        sums = undefined;
      });
    }
    return sums[name];
  };
  const add = (name: string, help: string, sum: keyof ReturnType<typeof sumCollections>) =>
    metrics.addGauge(name, help, read(sum));
  add(
    'sagitta_collections',
    'Collections, with those that other nodes of a cluster hold.',
    'collections',
  );
  add('sagitta_collections_failed', 'Collections that could not be loaded.', 'failed');
  add('sagitta_vectors', 'Vectors in all collections that this process holds.', 'vectors');
  add('sagitta_host_bytes', 'Host memory of all collections.', 'hostBytes');
  add('sagitta_mapped_bytes', 'Mapped files of all collections.', 'mappedBytes');
  add('sagitta_device_bytes', 'Device memory of all collections.', 'deviceBytes');
}

function sumCollections(database: Database) {
  const memory = { hostBytes: 0, mappedBytes: 0, deviceBytes: 0 };
  const sums = { collections: 0, failed: 0, vectors: 0, ...memory };
  // One page: each page sorts all collections.
  const { collections } = database.listCollections({ limit: Number.POSITIVE_INFINITY });
  for (const { status, vectorCount, memory: used } of collections) {
    sums.collections++;
    if (status === 'failed') sums.failed++;
    sums.vectors += vectorCount;
    sums.hostBytes += used.hostBytes;
    sums.mappedBytes += used.mappedBytes;
    sums.deviceBytes += used.deviceBytes;
  }
  return sums;
}
