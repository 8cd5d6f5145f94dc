// The record of a log's newest snapshot. The owner of the log commits it, and the commit fails once another node owns the
// log, so only the owner removes anything.

import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';
import { SNAPSHOTS } from '../logs/store-keys.js';

const keyOf = (log: string): StoreKey => [...SNAPSHOTS, log];

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
  return { kind: 'put', key: keyOf(log), value: Buffer.from(JSON.stringify(record)) };
}

export function readSnapshotRecord(
  store: Pick<StateReader, 'get'>,
  log: string,
): SnapshotRecord | null {
  const value = store.get(keyOf(log));
  return value === undefined ? null : (JSON.parse(Buffer.from(value).toString()) as SnapshotRecord);
}
