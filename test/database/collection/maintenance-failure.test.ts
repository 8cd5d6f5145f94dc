// Maintenance on a full disk removes the files of a failed checkpoint, and retries without another write.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import { batchOf, createTestClock, openDatabase } from '../harness.js';

const RETRY_MS = 10_000;

async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}

it('a checkpoint on a full disk leaves no file, and is made once there is space', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const state = createMemoryState();
  const clock = createTestClock();
  let isFull = true;
  const store = createMemoryStore({
    state,
    async beforeCommit(operations) {
      // Only the manifest cannot be stored, after its files were written.
      const isCheckpoint = operations.some(({ kind }) => kind === 'trim');
      if (isFull && isCheckpoint) throw new SagittaError('storage_full', 'no room');
    },
  });
  const database = await openDatabase({ store, clock });
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  });
  const vectors = Array.from({ length: 200 }, (_, i) => ({
    id: `v${i}`,
    values: [i, 1],
    metadata: '{}',
  }));
  await database.collection('c').write(batchOf(vectors), { mode: 'upsert' });
  await settle();
  assert.deepEqual([...state.blobs.keys()], []);
  clock.nowMs += RETRY_MS;
  t.mock.timers.tick(RETRY_MS);
  await settle();
  assert.deepEqual([...state.blobs.keys()], [], 'there is still no room');
  isFull = false;
  clock.nowMs += RETRY_MS;
  t.mock.timers.tick(RETRY_MS);
  await settle();
  assert.equal(state.blobs.size, 3);
  assert.equal(database.collection('c').record().vectorCount, 200);
  await database.close();
  const again = await openDatabase({ state, clock });
  assert.equal(again.collection('c').record().vectorCount, 200);
  await again.close();
});
