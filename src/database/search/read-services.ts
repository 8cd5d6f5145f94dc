// The services that queries, aggregations, exports and joins read a collection with.

import type { Clock } from '../../common/clock.js';
import type { Limits } from '../../common/limits.js';
import type { Engine } from '../../engine/core/engine.js';
import type { SparseIndexes } from '../../inverted/sparse-index.js';
import type { TextIndexes } from '../../inverted/text-index.js';
import type { WorkerPool } from '../../platform/pool.js';
import type { DatabaseObserver } from '../api/observer.js';
import type { ServedCollections } from '../collection/snapshot-view.js';
import type { FilterCache } from '../filters/filter-cache.js';
import type { Peers } from './peers.js';
import type { SearchScheduler } from './search-scheduler.js';

export interface ReadServices {
  readonly collections: ServedCollections;
  readonly engine: Engine;
  readonly scheduler: SearchScheduler;
  /** The nodes that share searches with this one. */
  readonly peers: Peers;
  readonly filters: FilterCache;
  readonly textIndexes: TextIndexes;
  readonly sparseIndexes: SparseIndexes;
  readonly pool: WorkerPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly observer: DatabaseObserver;
}
