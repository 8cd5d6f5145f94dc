// What exports, joins and projections are given beside what every read needs.

import type { Segment } from '../../segment/segment.js';
import type { Collection } from '../collection/collection.js';
import type { ServedCollections } from '../collection/snapshot-view.js';
import type { ReadServices } from '../search/read-services.js';
import type { ScanStats } from './scan-stats.js';

export interface BulkServices extends ReadServices {
  readonly collections: LoadedCollections;
  readonly scanStats: ScanStats;
  /** Drops what the engine and the filter cache hold for a segment that is gone. */
  readonly unloadSegment: (segment: Segment) => void;
}

interface LoadedCollections extends ServedCollections {
  /** The collection with this id or alias, once it is loaded. */
  requireLoaded(name: string): Promise<Collection>;
}
