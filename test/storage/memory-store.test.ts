// The memory store against the contract, and its hooks for tests.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import type { Store } from '../../src/storage/store.js';
import { withResolvers } from '../support/waiting.js';
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

describe('memory store', () => {
  const put = { kind: 'put', key: ['k'], value: new Uint8Array([1]) } as const;

  it('writes nothing if the hook of a commit fails, and accepts the next commit', async () => {
    let isBroken = true;
    const store = createMemoryStore({
      beforeCommit: async () => {
        if (isBroken) throw new Error('broken');
      },
    });
    await assert.rejects(store.commit([put]), /broken/);
    assert.equal(store.get(['k']), undefined);
    isBroken = false;
    await store.commit([put]);
    assert.deepEqual([...store.get(['k'])!], [1]);
  });

  it('delays a commit and later ones while its hook waits', async () => {
    const { promise: held, resolve: letGo } = withResolvers();
    const seen: number[] = [];
    const store = createMemoryStore({
      beforeCommit: async (operations) => {
        seen.push(operations.length);
        await held;
      },
    });
    const commits = [store.commit([put]), store.commit([put, { kind: 'remove', key: ['k'] }])];
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(seen, [1]);
    assert.equal(store.get(['k']), undefined);
    letGo();
    await Promise.all(commits);
    assert.deepEqual(seen, [1, 2]);
    assert.equal(store.get(['k']), undefined);
  });
});
