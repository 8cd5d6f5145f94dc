// The record of a log's newest snapshot, and that of a first snapshot which the log continues. The owner of the log commits
// it, and the commit fails once another node owns the log, so only the owner removes anything.

import type { StateReader, StoreOperation } from '../../storage/store.js';
import { ORIGINS, putEntry, readEntry, SNAPSHOTS } from '../logs/store-entries.js';

export interface LogSnapshot {
  readonly name: string;
  /** The position up to which it contains the log. */
  readonly position: number;
}

export interface SnapshotRecord extends LogSnapshot {
  /** The snapshot before, which stays, since a node may be loading it; null for the first one. */
  readonly previous: LogSnapshot | null;
  /** The position of the snapshot before that; 0 for none. */
  readonly earlierPosition: number;
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

/** Committed to the log of the catalogue: nodes without the first snapshot of the log cannot begin with its first record. */
export function originOperation(log: string): StoreOperation {
  return putEntry([...ORIGINS, log], {});
}

export function originRemoval(log: string): StoreOperation {
  return { kind: 'remove', key: [...ORIGINS, log] };
}

export function hasOrigin(store: Pick<StateReader, 'get'>, log: string): boolean {
  return store.get([...ORIGINS, log]) !== undefined;
}
