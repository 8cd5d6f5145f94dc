// The record of a log's newest snapshot. The owner of the log commits it, and the commit fails once another node owns the
// log, so only the owner removes anything.

import type { StateReader, StoreOperation } from '../../storage/store.js';
import { putEntry, readEntry, SNAPSHOTS } from '../logs/store-entries.js';

export interface LogSnapshot {
  readonly name: string;
  /** The position up to which it contains the log. */
  readonly position: number;
}

export interface SnapshotRecord extends LogSnapshot {
  /** The snapshot before, which stays, since a node may be loading it; null for the first one. */
  readonly previous: LogSnapshot | null;
  /** Blobs that neither of the two uses. The node that committed the record removes them. */
  readonly removed: readonly string[];
}

export function snapshotOperation(log: string, record: SnapshotRecord): StoreOperation {
  return putEntry([...SNAPSHOTS, log], record);
}

/** Null for a log without a snapshot. */
export function readSnapshotRecord(
  store: Pick<StateReader, 'get'>,
  log: string,
): SnapshotRecord | null {
  return readEntry<SnapshotRecord>(store, [...SNAPSHOTS, log]) ?? null;
}
