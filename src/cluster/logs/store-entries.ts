// The entries that a cluster keeps in the store of each node, beside those of the database, and the name of the
// catalogue's log. All but the applied positions are committed to a log, so that every node that follows it has them.

import type { StateReader, StoreKey, StoreOperation } from '../../storage/store.js';

/** The log of the catalogue. The others are named after the incarnation of their collection. */
export const CATALOGUE = 'catalogue';

/** The position that the store has applied, by log. */
export const APPLIED_POSITIONS: StoreKey = ['replication'];
/** The newest snapshot, by log. */
export const SNAPSHOTS: StoreKey = ['log-snapshot'];
/** The logs that continue a first snapshot: those of clones, and of the data that founded the cluster. */
export const ORIGINS: StoreKey = ['log-origin'];
/** The nodes that hold a collection, by incarnation. */
export const PLACEMENTS: StoreKey = ['placement'];
/** The nodes that are drained, by name. */
export const DRAINED_NODES: StoreKey = ['drained-node'];
/** In the store from the preparation of a founding until its first snapshots are in the log of the catalogue. */
export const FOUNDING: StoreKey = ['replication-founding'];
/** A random value for each cluster that began with data: positions in its logs say nothing about those in others. */
export const FOUNDED: StoreKey = ['replication-founded'];

/** What a node must remove before it brings the data of its store into another cluster. */
export const CLUSTER_PREFIXES: readonly StoreKey[] = [
  APPLIED_POSITIONS,
  SNAPSHOTS,
  ORIGINS,
  DRAINED_NODES,
  PLACEMENTS,
  FOUNDED,
];

export function putEntry(key: StoreKey, value: object): Extract<StoreOperation, { kind: 'put' }> {
  return { kind: 'put', key, value: Buffer.from(JSON.stringify(value)) };
}

export function readEntry<Value>(
  store: Pick<StateReader, 'get'>,
  key: StoreKey,
): Value | undefined {
  const value = store.get(key);
  return value === undefined ? undefined : decodeEntry(value);
}

export function decodeEntry<Value>(value: Uint8Array): Value {
  return JSON.parse(Buffer.from(value).toString()) as Value;
}
