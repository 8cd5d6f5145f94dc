// The services that all operations share. The database creates them once; each layer names the part that it uses.

import type { BufferPool } from '../common/buffer-pool.js';
import type { CommitLogs } from '../storage/commit-log.js';
import type { IdempotencyKeys } from './admin/idempotency.js';
import type { BulkServices } from './bulk/bulk-services.js';
import type { Catalogue } from './catalogue/catalogue.js';
import type { Collections } from './catalogue/collections.js';
import type { QueryServices } from './query/query-services.js';

export interface DatabaseServices extends QueryServices, BulkServices {
  readonly collections: Collections;
  readonly catalogue: Catalogue;
  readonly logs: CommitLogs;
  /** Why this engine was chosen, for the records of collections. */
  readonly engineReason: string;
  readonly idempotencyKeys: IdempotencyKeys;
  /** Reusable buffers for encoded log records. */
  readonly recordBytes: BufferPool;
}
