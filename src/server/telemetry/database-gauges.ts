// Gauges over all collections: one series each, however many collections there are.

import type { Database } from '../../database/database.js';
import type { Metrics } from '../../platform/metrics.js';

export function addDatabaseGauges(metrics: Metrics, database: Database): void {
  let sums: ReturnType<typeof sumCollections> | undefined;
  // A scrape reads all gauges in one turn of the event loop: one walk serves them all.
  const read = (name: keyof ReturnType<typeof sumCollections>) => () => {
    if (sums === undefined) {
      sums = sumCollections(database);
      setImmediate(() => {
        sums = undefined;
      });
    }
    return sums[name];
  };
  metrics.addGauge('sagitta_collections', 'Collections.', read('collections'));
  metrics.addGauge('sagitta_collections_failed', 'Those that cannot be served.', read('failed'));
  metrics.addGauge('sagitta_vectors', 'Vectors in all collections.', read('vectors'));
  metrics.addGauge('sagitta_host_bytes', 'Host memory of all collections.', read('hostBytes'));
  metrics.addGauge('sagitta_device_bytes', 'Device memory of them.', read('deviceBytes'));
}

function sumCollections(database: Database) {
  const sums = { collections: 0, failed: 0, vectors: 0, hostBytes: 0, deviceBytes: 0 };
  let cursor: string | undefined;
  do {
    const page = database.listCollections({ cursor });
    for (const { status, vectorCount, memory } of page.collections) {
      sums.collections++;
      if (status === 'failed') sums.failed++;
      sums.vectors += vectorCount;
      sums.hostBytes += memory.hostBytes;
      sums.deviceBytes += memory.deviceBytes;
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return sums;
}
