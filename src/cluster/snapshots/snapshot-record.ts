// What the log of the catalogue, or of a collection, says about its newest snapshot. Its owner commits it, so that
// only an owner removes anything: the commit fails when another node owns the log.

import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';
import { SNAPSHOTS } from '../logs/store-keys.js';

const keyOf = (log: string): StoreKey => [...SNAPSHOTS, log];

export interface LogSnapshot {
  readonly name: string;
  /** Up to where it has the log. */
  readonly position: number;
}

export interface SnapshotRecord extends LogSnapshot {
  /** The one before, which stays, with what it needs: a node may have begun with it. Null for the first one. */
  readonly previous: LogSnapshot | null;
  /** Blobs that neither of the two needs. Whoever has committed the record removes them. */
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
