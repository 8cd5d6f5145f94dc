// The services of exports, joins and projections.

import type { Segment } from '../../segment/segment.js';
import type { Collection } from '../collection/collection.js';
import type { ServedCollections } from '../collection/snapshot-view.js';
import type { ReadServices } from '../search/read-services.js';
import type { ScanStats } from './scan-stats.js';

export interface BulkServices extends ReadServices {
  readonly collections: LoadedCollections;
  readonly scanStats: ScanStats;
  /** Frees what the engine and the filter cache keep for a segment that no longer exists. */
  readonly unloadSegment: (segment: Segment) => void;
}

interface LoadedCollections extends ServedCollections {
  /** The collection with this id or alias, once it is loaded. */
  requireLoaded(name: string): Promise<Collection>;
}
