// Gauges over all collections, with one series each regardless of the number of collections.

import type { Database } from '../../database/database.js';
import type { Metrics } from '../../platform/metrics.js';

export function addDatabaseGauges(metrics: Metrics, database: Database): void {
  let sums: ReturnType<Database['collectionSums']> | undefined;
  // A scrape reads all gauges in one iteration of the event loop, so that they share one pass.
  const read = (name: keyof ReturnType<Database['collectionSums']>) => () => {
    if (sums === undefined) {
      sums = database.collectionSums();
      setImmediate(() => {
        sums = undefined;
      });
    }
    return sums[name];
  };
  metrics.addReading('sagitta_collections', read('collections'));
  metrics.addReading('sagitta_collections_loading', () => database.loadingCount);
  metrics.addReading('sagitta_collections_failed', read('failed'));
  metrics.addReading('sagitta_vectors', read('vectors'));
  metrics.addReading('sagitta_host_bytes', read('hostBytes'));
  metrics.addReading('sagitta_mapped_bytes', read('mappedBytes'));
  metrics.addReading('sagitta_device_bytes', read('deviceBytes'));
}
