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
  metrics.addReading('sagitta_collections', read('collections'));
  metrics.addReading('sagitta_collections_failed', read('failed'));
  metrics.addReading('sagitta_vectors', read('vectors'));
  metrics.addReading('sagitta_host_bytes', read('hostBytes'));
  metrics.addReading('sagitta_mapped_bytes', read('mappedBytes'));
  metrics.addReading('sagitta_device_bytes', read('deviceBytes'));
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
