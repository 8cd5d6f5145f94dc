// The in-memory store against the contract, and its hooks for tests.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/store/memory-store.js';
import type { Store } from '../../src/store/store.js';
import { storeContract } from './contract.js';

const states = new WeakMap<Store, MemoryState>();

function openWith(state: MemoryState): Store {
  const store = createMemoryStore({ state });
  states.set(store, state);
  return store;
}

storeContract('memory', {
  open: async () => openWith(createMemoryState()),
  reopen: async (store) => {
    await store.close();
    return openWith(states.get(store)!);
  },
});

it('memory: a commit that fails writes nothing and the next one succeeds', async () => {
  let isBroken = true;
  const store = createMemoryStore({
    beforeCommit: async () => {
      if (isBroken) throw new Error('broken');
    },
  });
  const put = { kind: 'put', key: ['k'], value: new Uint8Array([1]) } as const;
  await assert.rejects(store.commit([put]), /broken/);
  assert.equal(store.get(['k']), undefined);
  isBroken = false;
  await store.commit([put]);
  assert.deepEqual([...store.get(['k'])!], [1]);
});
