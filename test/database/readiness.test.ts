// The record of a collection during its load, and after a failed load.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../src/common/errors.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import { batchOf, openDatabase, overrideStore } from './harness.js';
import { openOver, rowsOf, SHAPE, turns } from './starting.js';

/** Two collections; `c` has three files of 64 rows, and some rows in the log. */
async function createState(): Promise<MemoryState> {
  const state = createMemoryState();
  const database = await openDatabase({ state });
  for (const id of ['c', 'd']) await database.createCollection({ id, ...SHAPE });
  await database.collection('c').write(batchOf(rowsOf(200)), { mode: 'upsert' });
  await turns();
  await database.close();
  return state;
}

describe('a collection that is not ready', () => {
  it('reports how many of its segments have been read', async () => {
    const store = createMemoryStore({ state: await createState() });
    const gates: (() => void)[] = [];
    const database = await openOver(
      overrideStore(store, {
        async readBlob(name) {
          await new Promise<void>((resolve) => gates.push(resolve));
          return store.readBlob(name);
        },
      }),
    );
    const reasonOf = (id: string) => {
      const { status, statusReason } = database.collection(id).record();
      return [status, statusReason];
    };
    const next = async () => {
      while (gates.length === 0) await new Promise((resolve) => setImmediate(resolve));
    };
    for (const loadedCount of [0, 1, 2]) {
      await next();
      assert.equal(database.loadingCount, 1);
      const [status, reason] = reasonOf('c');
      assert.equal(status, 'loading');
      assert.match(reason!, new RegExp(`: ${loadedCount} of 3 segments`));
      gates.shift()!();
    }
    await database.loaded;
    assert.deepEqual(
      [reasonOf('c'), reasonOf('d')],
      [
        ['ready', undefined],
        ['ready', undefined],
      ],
    );
    await database.close();
  });

  it('reports what is damaged by the name of the file in the store', async () => {
    const state = await createState();
    const [name, bytes] = [...state.blobs][0]!;
    state.blobs.set(name, bytes.slice(0, -1));
    const database = await openOver(createMemoryStore({ state }));
    await database.loaded;
    const { status, statusReason } = database.collection('c').record();
    assert.equal(status, 'failed');
    assert.ok(statusReason!.includes(name) && /is damaged: It has \d+ bytes/.test(statusReason!));
    await database.close();
  });

  it('is not read further when the database is closed', async () => {
    const store = createMemoryStore({ state: await createState() });
    const read: string[] = [];
    const database = await openOver(
      overrideStore(store, {
        async readBlob(name) {
          read.push(name);
          await new Promise((resolve) => setImmediate(resolve));
          return store.readBlob(name);
        },
      }),
    );
    while (read.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await database.close();
    assert.deepEqual([read.length, database.isStopping], [1, true]);
    const { status } = database.collection('c').record();
    assert.equal(status, 'loading');
  });

  it('does not apply its log when the database is closed', async () => {
    const store = createMemoryStore({ state: await createState() });
    const read: string[] = [];
    const database = await openOver(
      overrideStore(store, {
        *readLog(name, after) {
          read.push(name);
          void database.close();
          yield* store.readLog(name, after);
        },
      }),
    );
    await database.loaded;
    assert.equal(read.length, 1);
    assert.equal(database.collection('c').record().status, 'loading');
    await database.close();
  });

  it('shows paths of the host in the log only', async () => {
    const store = createMemoryStore({ state: await createState() });
    const message = 'The file /var/lib/sagitta/journal/00000002.log is damaged: it is missing.';
    const database = await openOver(
      overrideStore(store, {
        readLog() {
          throw new SagittaError('data_corrupt', message);
        },
      }),
    );
    await database.loaded;
    assert.equal(
      database.collection('c').record().statusReason,
      'Its data cannot be read. The log of the service has the cause. Run "sagitta verify" to find all damage, and restore a backup.',
    );
    await assert.rejects(
      database.collection('c').query({ vector: Float32Array.of(1) }),
      (error: Error) => {
        return (
          (error as SagittaError).code === 'collection_unavailable' &&
          !/journal/.test(error.message)
        );
      },
    );
    await database.close();
  });
});
