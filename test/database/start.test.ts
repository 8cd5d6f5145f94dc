// The start of a database: which collections are loaded first, and what waits for them.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { field } from '../../src/common/errors.js';
import { createMemoryState, createMemoryStore } from '../../src/storage/memory-store.js';
import { withResolvers } from '../support/waiting.js';
import { batchOf, openDatabase, overrideStore } from './harness.js';
import { createStateOf, openOver, rowsOf, SHAPE, startDatabase, turns } from './starting.js';

const IDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** Starts a database with these collections, whose files are read at the end of the test at the latest. */
async function startWith(t: TestContext, ids: readonly string[], ...rest: object[]) {
  const started = await startDatabase(await createStateOf(ids), ...rest);
  t.after(async () => {
    t.mock.reset();
    started.release(...ids);
    await started.database.close();
  });
  return started;
}

const NEAREST = { vector: Float32Array.of(1), limit: 1 };

describe('a start', () => {
  it('loads requested collections before the others', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    await turns();
    assert.deepEqual([begun, database.loadingCount], [['a', 'b'], 8]);
    const asked = ['h', 'e', 'g', 'f', 'd', 'h'].map((id) => database.collection(id).count());
    await turns();
    // Four at once, in addition to collections that no request waits for.
    assert.deepEqual(begun, ['a', 'b', 'h', 'e', 'g', 'f']);
    release('h');
    assert.deepEqual([await asked[0], await asked[5]], [70, 70]);
    await turns();
    assert.deepEqual(begun.slice(6), ['d']);
    release('d', 'e', 'f', 'g');
    assert.deepEqual(await Promise.all(asked), [70, 70, 70, 70, 70, 70]);
    assert.equal(database.loadingCount, 3);
    release('a');
    await turns();
    assert.deepEqual(begun.slice(7), ['c']);
    release('b', 'c');
    await database.loaded;
    assert.deepEqual([begun.length, database.loadingCount], [8, 0]);
  });

  it('loads a requested collection next when a worker becomes idle', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    const asked = ['h', 'g', 'f', 'e', 'd'].map((id) => database.collection(id).count());
    await turns();
    assert.deepEqual(new Set(begun), new Set(['a', 'b', 'e', 'f', 'g', 'h']));
    release('a');
    await turns();
    assert.deepEqual(begun.slice(6), ['d']);
    release('d', 'e', 'f', 'g', 'h');
    assert.deepEqual(await Promise.all(asked), [70, 70, 70, 70, 70]);
  });

  it('answers every operation on a collection when that one is loaded', async (t) => {
    const { database, release } = await startWith(t, ['a', 'b', 'c']);
    const c = database.collection('c');
    const answers = Promise.all([
      c.query(NEAREST),
      c.get('v3', { values: true, metadata: false }),
      c.segments({}),
      c.loadedRecord(),
      c.write(batchOf([{ id: 'new', values: [100], metadata: '{}' }]), { mode: 'upsert' }),
      database.createCollection({ id: 'c', ...SHAPE }, { ifNotExists: true }),
      c.update({ description: 'changed' }),
    ]);
    assert.deepEqual([c.record().status, c.record().vectorCount], ['loading', 0]);
    release('c');
    const [found, vector, { segments }, record, written, { record: existing }] = await answers;
    assert.deepEqual([found.matches[0]!.id, vector.values![0], segments.length], ['v69', 3, 2]);
    assert.deepEqual([record.status, record.vectorCount], ['ready', 70]);
    assert.deepEqual([written.insertedCount, existing.status], [1, 'ready']);
    assert.deepEqual([c.record().description, c.record().vectorCount], ['changed', 71]);
    assert.equal(database.collection('a').record().status, 'loading');
  });

  it('loads both collections of a join', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    const joined = database.collection('g').join({ with: 'h', topK: 1 });
    release('g');
    await turns();
    assert.deepEqual(begun.slice(2), ['g', 'h']);
    release('h');
    await joined;
  });

  it('refuses requests that have waited too long with `starting`', async (t) => {
    const { database, release } = await startWith(t, IDS, { limits: { requestMsMax: 10_000 } });
    await turns();
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const waiting = database.collection('a').count();
    const refused = assert.rejects(waiting, {
      code: 'starting',
      message:
        'Collection "a" is not ready. It is being loaded: 0 of 1 segments read; the log follows. Retry after 1 s.',
      retryAfterSeconds: 1,
    });
    // The rest of the time limit of a request is left for its answer.
    t.mock.timers.tick(8_999);
    await turns();
    t.mock.timers.tick(1);
    await refused;
    const later = database.collection('a').count();
    release('a');
    assert.equal(await later, 70);
  });

  it('reports the damage of a damaged collection, and answers for the others', async (t) => {
    const state = await createStateOf(['bad', 'good']);
    const [name] = [...state.blobs.keys()];
    state.blobs.delete(name!);
    const { database, release } = await startDatabase(state);
    t.after(() => database.close());
    const asked = ['bad', 'good'].map((id) => database.collection(id).count());
    release('bad', 'good');
    await assert.rejects(asked[0]!, { code: 'collection_unavailable', message: /is missing/ });
    assert.equal(await asked[1], 70);
    await database.loaded;
    assert.deepEqual(
      database
        .unservedCollections({ isVisible: () => true, countMax: 9 })
        .map(({ id, status }) => [id, status]),
      [['bad', 'failed']],
    );
    assert.deepEqual(await database.collection('bad').drop(), { vectorCount: 0 });
  });

  it('ends when the database is closed, with an error for waiting requests', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    const asked = ['h', 'g', 'f', 'e', 'd'].map((id) => database.collection(id).count());
    const refused = asked.map((waiting) => assert.rejects(waiting, { code: 'stopping' }));
    await turns();
    const closed = database.close();
    // A load in progress ends after its current file.
    release(...IDS);
    await closed;
    await Promise.all(refused);
    assert.equal(begun.length, 6);
    await assert.rejects(database.collection('c').count(), { code: 'stopping' });
  });

  it('ends in the middle of a long log when the database is closed', async () => {
    const limits = { segmentRowsMax: 10_000 };
    const state = createMemoryState();
    const written = await openDatabase({ state, limits });
    await written.createCollection({ id: 'c', ...SHAPE });
    const writes = rowsOf(500).map((row) =>
      written.collection('c').write(batchOf([row]), { mode: 'upsert' }),
    );
    await Promise.all(writes);
    const memory = createMemoryStore({ state });
    let readCount = 0;
    let closed: Promise<void> | undefined;
    const store = overrideStore(memory, {
      *readLog(log, after) {
        for (const entry of memory.readLog(log, after)) {
          if (++readCount === 10) closed = database.close();
          const untilMs = performance.now() + 5;
          while (performance.now() < untilMs);
          yield entry;
        }
      },
    });
    const database = await openOver(store, limits);
    await database.loaded;
    await closed;
    // The turn in which the service stops is not cut short.
    assert.ok(readCount < 20, `${readCount} records were read`);
    const again = await openDatabase({ state, limits });
    assert.equal(await again.collection('c').count(), 500);
    await again.close();
    await written.close();
  });

  it('lists collections in their current state', async (t) => {
    const { database, release } = await startWith(t, ['a', 'b', 'c']);
    const statuses = () =>
      database.listCollections({}).collections.map(({ id, status }) => `${id} ${status}`);
    assert.deepEqual(statuses(), ['a loading', 'b loading', 'c loading']);
    assert.equal(database.collectionSums().vectors, 0);
    release('c');
    await database.collection('c').count();
    assert.deepEqual(statuses(), ['a loading', 'b loading', 'c ready']);
    const { collections, failed, vectors } = database.collectionSums();
    assert.deepEqual({ collections, failed, vectors }, { collections: 3, failed: 0, vectors: 70 });
    const [first, ...others] = database.unservedCollections({
      isVisible: (id) => id !== 'a',
      countMax: 9,
    });
    assert.deepEqual([first!.id, first!.status, others], ['b', 'loading', []]);
  });
});

describe('while a database is being started', () => {
  it('collections are deleted, renamed and cloned when they are loaded', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    const dropped = database.collection('h').drop();
    const renamed = database.collection('g').rename('new');
    const cloned = database.collection('f').clone({ id: 'copy' });
    await turns();
    assert.deepEqual(begun, ['a', 'b', 'h', 'g', 'f']);
    release('f', 'g', 'h');
    assert.deepEqual(await dropped, { vectorCount: 70 });
    assert.deepEqual([(await renamed).id, (await renamed).vectorCount], ['new', 70]);
    assert.equal((await cloned).vectorCount, 70);
    await database.createCollection({ id: 'h', ...SHAPE });
    release(...IDS);
    await database.loaded;
    const counts = database
      .listCollections({})
      .collections.map((record) => [record.id, record.vectorCount]);
    assert.deepEqual(counts, [
      ['a', 70],
      ['b', 70],
      ['c', 70],
      ['copy', 70],
      ['d', 70],
      ['e', 70],
      ['f', 70],
      ['h', 0],
      ['new', 70],
    ]);
  });

  it('an alias is set at once, and a request by it has its collection loaded', async (t) => {
    const { database, begun, release } = await startWith(t, IDS);
    const [alias] = await database.setAliases([{ name: 'live', collection: 'h' }], {
      authorize: () => {},
      locate: () => field(),
    });
    assert.deepEqual([alias!.collection, begun.includes('h')], ['h', false]);
    const answer = database.collection('live').query(NEAREST);
    release('h');
    assert.equal((await answer).matches[0]!.id, 'v69');
    assert.equal(database.collection('g').record().status, 'loading');
  });

  it('leftovers of a process are removed, and new collections are kept', async (t) => {
    const state = await createStateOf(['a', 'gone']);
    const store = createMemoryStore({ state });
    const [gone] = [...store.list(['collection'])].filter(({ key }) => key[1] === 'gone');
    await store.commit([{ kind: 'remove', key: gone!.key }]);
    const listing = withResolvers();
    const database = await openOver(
      overrideStore(store, {
        async listBlobs(prefix) {
          if (prefix === undefined) await listing.promise;
          return store.listBlobs(prefix);
        },
      }),
    );
    t.after(() => database.close());
    const cloned = database.collection('a').clone({ id: 'copy' });
    await database.createCollection({ id: 'made', ...SHAPE });
    await database.collection('made').write(batchOf(rowsOf(70)), { mode: 'upsert' });
    await turns();
    assert.equal(database.collection('a').record().status, 'ready');
    assert.equal(new Set([...state.blobs.keys()].map((name) => name.split('/')[0])).size, 3);
    listing.resolve();
    await cloned;
    await database.loaded;
    const left = new Set([...state.blobs.keys()].map((name) => name.split('/')[0]));
    assert.deepEqual(left, new Set(database.incarnations));
    const { incarnation } = JSON.parse(Buffer.from(gone!.value).toString()) as {
      incarnation: string;
    };
    assert.equal(store.get(['manifest', incarnation]), undefined);
  });
});

it('a change of a collection keeps a state that is set while the change is stored', async (t) => {
  const store = createMemoryStore({ state: await createStateOf(['a']) });
  let stored: Promise<void> | undefined;
  const database = await openOver(
    overrideStore(store, {
      async commit(operations) {
        await stored;
        return store.commit(operations);
      },
    }),
  );
  t.after(() => database.close());
  await database.loaded;
  const incarnation = database.incarnationOf('a')!;
  await database.unloadCollection(incarnation);
  const gate = withResolvers();
  stored = gate.promise;
  const changed = database.collection('a').update({ labels: { tier: 'one' } });
  await database.loadCollection(incarnation);
  gate.resolve();
  const { status, labels } = await changed;
  assert.deepEqual([status, labels], ['ready', { tier: 'one' }]);
  assert.equal(await database.collection('a').count(), 70);
});
