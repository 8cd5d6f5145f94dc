// Which nodes are drained: an operator wants to stop them, so they own logs and hold collections only where no other
// node can. The log of the catalogue records it, so every node knows, also after a restart.

import type { Store, StoreKey, StoreOperation } from '../../storage/store.js';
import { DRAINED_NODES, putEntry } from '../logs/store-entries.js';

/** `draining`: other nodes still have to take over logs or collections; `drained`: the node can be stopped. */
export type DrainState = 'none' | 'draining' | 'drained';

export function isDrained(store: Store, node: string): boolean {
  return store.get(keyOf(node)) !== undefined;
}

export function drainOperation(node: string, isDrained: boolean): StoreOperation {
  const key = keyOf(node);
  return isDrained ? putEntry(key, {}) : { kind: 'remove', key };
}

function keyOf(node: string): StoreKey {
  return [...DRAINED_NODES, node];
}
