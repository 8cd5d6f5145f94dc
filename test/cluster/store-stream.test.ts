// Logs on the store of one process: the contract, and the state after a restart.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ChainedLog } from '../../src/cluster/logs/chained-log.js';
import { StoreStream } from '../../src/cluster/logs/store-stream.js';
import { createMemoryState, createMemoryStore } from '../../src/storage/memory-store.js';
import { commitOf, committed, logContract, outline, readAll, takeOver } from './log-contract.js';

logContract('store', { create: async () => new StoreStream(createMemoryStore(), 'log') });

describe('a log on a store', () => {
  it('goes on after a restart, with a writer of the next epoch', async () => {
    const state = createMemoryState();
    const store = createMemoryStore({ state });
    const log = new ChainedLog(new StoreStream(store, 'log'));
    const { writer } = await takeOver(log);
    await committed(writer, commitOf(1));
    await store.close();
    const again = new ChainedLog(new StoreStream(createMemoryStore({ state }), 'log'));
    const { writer: next, records } = await takeOver(again, { owner: 'b' });
    assert.deepEqual(outline(records), ['epoch 1 by a', 1, 'epoch 2 by b']);
    await committed(next, commitOf(2));
    assert.deepEqual(outline(await readAll(again, next.head)), []);
  });
});
