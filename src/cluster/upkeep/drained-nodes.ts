// Which nodes are drained: they are to be stopped, and own logs only if no other node can. The log of the catalogue has
// it, so that all nodes know, and a node that was drained still is after a restart. What else a node may have to hand
// over before it can be stopped belongs here, too.

import type { Store, StoreKey, StoreOperation } from '../../storage/store.js';

/** `draining`: it owns logs, which other nodes must take over; `drained`: it can be stopped. */
export type DrainState = 'none' | 'draining' | 'drained';

const PREFIX: StoreKey = ['drained-node'];

export function isDrained(store: Store, node: string): boolean {
  return store.get([...PREFIX, node]) !== undefined;
}

export function drainOperation(node: string, isDrained: boolean): StoreOperation {
  const key: StoreKey = [...PREFIX, node];
  return isDrained ? { kind: 'put', key, value: Buffer.from('{}') } : { kind: 'remove', key };
}
