// What the operations on all collections share. The database makes it once; a function that carries out an
// operation is given it, and takes of it what its own layer names.

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
  /** Why this engine was chosen: part of every collection's record. */
  readonly engineReason: string;
  readonly idempotencyKeys: IdempotencyKeys;
  /** Buffers that log records are encoded in, one after another. */
  readonly recordBytes: BufferPool;
}
