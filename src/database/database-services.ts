// What the operations on all collections share. The database makes it once; every function that
// carries out an operation is given it.

import type { BufferPool } from '../common/buffer-pool.js';
import type { Clock } from '../common/clock.js';
import type { Limits } from '../common/limits.js';
import type { Engine } from '../engine/core/engine.js';
import type { SparseIndexes } from '../inverted/sparse-index.js';
import type { TextIndexes } from '../inverted/text-index.js';
import type { WorkerPool } from '../platform/pool.js';
import type { Segment } from '../segment/segment.js';
import type { CommitLogs } from '../storage/commit-log.js';
import type { IdempotencyKeys } from './admin/idempotency.js';
import type { DatabaseObserver } from './api/observer.js';
import type { ScanStats } from './bulk/scan-stats.js';
import type { Catalogue } from './catalogue/catalogue.js';
import type { Collections } from './catalogue/collections.js';
import type { FilterCache } from './filters/filter-cache.js';
import type { RowOrders } from './order/row-orders.js';
import type { CursorSealer } from './query/cursor.js';
import type { Peers } from './search/peers.js';
import type { SearchScheduler } from './search/search-scheduler.js';

export interface DatabaseServices {
  readonly collections: Collections;
  readonly catalogue: Catalogue;
  readonly logs: CommitLogs;
  readonly engine: Engine;
  /** Why this engine was chosen: part of every collection's record. */
  readonly engineReason: string;
  readonly scheduler: SearchScheduler;
  /** Nodes that search together with this one. */
  readonly peers: Peers;
  readonly filters: FilterCache;
  readonly rowOrders: RowOrders;
  readonly textIndexes: TextIndexes;
  readonly sparseIndexes: SparseIndexes;
  readonly pool: WorkerPool;
  readonly sealer: CursorSealer;
  readonly idempotencyKeys: IdempotencyKeys;
  readonly scanStats: ScanStats;
  /** Buffers that log records are encoded in, one after another. */
  readonly recordBytes: BufferPool;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly observer: DatabaseObserver;
  /** Drops what the engine and the filter cache hold for a segment that is gone. */
  readonly unloadSegment: (segment: Segment) => void;
}
