// Aliases, renamed collections and clones, over a store that survives a restart.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { field, type IssueLocation } from '../../../src/common/errors.js';
import { silentLogger } from '../../../src/common/logger.js';
import { Backups } from '../../../src/database/admin/backup.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import type { DiskStore, StoreOperation } from '../../../src/storage/store.js';
import { makeDirectory, openIn, openRestored } from '../../storage/directories.js';
import { batchOf, createCrashingStore, openDatabase, overrideStore } from '../harness.js';

const shape = {
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;
const ALL = { authorize() {}, locate: (): IssueLocation => field() };

const write = (database: Database, name: string, ids: readonly string[]) =>
  database
    .collection(name)
    .write(batchOf(ids.map((id) => ({ id, values: [1, 2], metadata: `{"id":"${id}"}` }))), {
      mode: 'upsert',
    });

const ids = (count: number, prefix = 'v') =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

async function idsIn(database: Database, name: string): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await database.collection(name).list({ limit: 50, cursor });
    found.push(...page.vectors.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

describe('aliases', () => {
  it('stand for a collection, follow it when it is renamed, and survive a restart', async () => {
    const state = createMemoryState();
    let database = await openDatabase({ state });
    await database.createCollection({ id: 'a', ...shape });
    await database.setAliases([{ name: 'live', collection: 'a' }], ALL);
    await write(database, 'live', ['x']);
    await database.collection('live').rename('b');
    assert.equal(database.collection('a').exists, false);
    assert.equal(database.collection('live').record().id, 'b');
    await database.close();

    database = await openDatabase({ state });
    assert.deepEqual(await idsIn(database, 'live'), ['x']);
    const { name, collection } = database.alias('live')!;
    assert.deepEqual([name, collection], ['live', 'b']);
    assert.equal(database.listAliases({}).total, 1);
    await database.close();
  });

  it('change all at once or not at all', async () => {
    const database = await openDatabase({});
    for (const id of ['a', 'b']) await database.createCollection({ id, ...shape });
    await database.setAliases(
      [
        { name: 'live', collection: 'a' },
        { name: 'next', collection: 'b' },
      ],
      ALL,
    );
    // Targets are looked up before anything changes, so that two aliases can be swapped.
    await database.setAliases(
      [
        { name: 'live', collection: 'next' },
        { name: 'next', collection: 'live' },
      ],
      ALL,
    );
    const targets = () => database.listAliases({}).aliases.map(({ collection }) => collection);
    assert.deepEqual(targets(), ['b', 'a']);
    for (const wrong of [
      { name: 'next', collection: 'none' },
      { name: 'a', collection: 'b' },
    ]) {
      const changes = [{ name: 'live', collection: null }, wrong];
      await assert.rejects(database.setAliases(changes, ALL));
      assert.deepEqual(targets(), ['b', 'a']);
    }
    await database.setAliases([{ name: 'live', collection: null }], ALL);
    assert.deepEqual(targets(), ['a']);
    await database.close();
  });

  it('keep their collection from being deleted, and their name from being taken', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'a', ...shape });
    await database.setAliases([{ name: 'live', collection: 'a' }], ALL);
    for (const name of ['a', 'live']) {
      await assert.rejects(database.collection(name).drop(), { code: 'collection_aliased' });
    }
    const create = database.createCollection({ id: 'live', ...shape });
    await assert.rejects(create, { code: 'collection_exists' });
    await assert.rejects(database.collection('a').rename('live'), { code: 'collection_exists' });
    await assert.rejects(database.collection('a').clone({ id: 'live' }), {
      code: 'collection_exists',
    });
    const same = await database.createCollection({ id: 'live', ...shape }, { ifNotExists: true });
    assert.deepEqual([same.created, same.record.id], [false, 'a']);
    await database.setAliases([{ name: 'live', collection: null }], ALL);
    await database.collection('a').drop();
    await database.close();
  });
});

describe('a backup', () => {
  it('has the aliases, and the expiries of vectors', async () => {
    const store = (await openIn(await makeDirectory())) as DiskStore;
    const database = await openDatabase({ store });
    await database.createCollection({ id: 'a', ...shape, ttlSeconds: 60 });
    await database.setAliases([{ name: 'live', collection: 'a' }], ALL);
    await write(database, 'live', ['x']);
    const directory = await makeDirectory();
    await new Backups({ store, directory, logger: silentLogger }).create('first');
    await database.close();
    await store.close();

    const copyStore = await openRestored(join(directory, 'first'));
    const copy = await openDatabase({ store: copyStore });
    const include = { values: false, metadata: false, expiry: true };
    const { expiresAt } = await copy.collection('live').get('x', include);
    assert.equal(expiresAt, '2026-01-01T00:01:00.000Z');
    await copy.close();
    await copyStore.close();
  });
});

describe('a renamed collection', () => {
  it('is still that of handles and cursors from before', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'a', ...shape });
    await write(database, 'a', ids(3));
    const before = database.collection('a');
    const page = await before.list({ limit: 1 });
    await before.rename('b');
    await write(database, 'b', ['later']);
    assert.equal(await before.count(), 4);
    const next = await database.collection('b').list({ cursor: page.nextCursor });
    assert.deepEqual(
      next.vectors.map(({ id }) => id),
      ['v1'],
    );
    await database.createCollection({ id: 'a', ...shape });
    assert.equal(await before.count(), 4);
    assert.equal(await database.collection('a').count(), 0);
    await database.close();
  });

  it('has its new id after a crash', async () => {
    const state = createMemoryState();
    const { store, die } = createCrashingStore(state);
    const database = await openDatabase({ store });
    await database.createCollection({ id: 'a', ...shape });
    await write(database, 'a', ids(70));
    await database.collection('a').rename('b');
    die();
    const reopened = await openDatabase({ state });
    assert.equal(reopened.collection('a').exists, false);
    assert.equal(await reopened.collection('b').count(), 70);
    await reopened.close();
  });
});

describe('a clone', () => {
  it('has the vectors of one moment, and goes its own way', async () => {
    const state = createMemoryState();
    let database = await openDatabase({ state });
    await database.createCollection({ id: 'a', ...shape, description: 'first' });
    await write(database, 'a', ids(150));
    await write(database, 'a', ids(20));
    await database.collection('a').delete({ kind: 'ids', ids: ['v30', 'v149'] }, { dryRun: false });
    const expected = await idsIn(database, 'a');
    const record = await database.collection('a').clone({ id: 'b', labels: { of: 'a' } });
    assert.deepEqual(
      [record.id, record.vectorCount, record.sequence, record.description, record.labels],
      ['b', 148, 3, 'first', { of: 'a' }],
    );
    await write(database, 'a', ['only-a']);
    await write(database, 'b', ['only-b']);
    await database.collection('b').delete({ kind: 'ids', ids: ['v0'] }, { dryRun: false });
    await database.close();

    database = await openDatabase({ state });
    const [inA, inB] = [await idsIn(database, 'a'), await idsIn(database, 'b')];
    assert.deepEqual(inA, [...expected, 'only-a']);
    assert.deepEqual(inB, [...expected.filter((id) => id !== 'v0'), 'only-b']);
    await database.collection('a').drop();
    assert.deepEqual(await idsIn(database, 'b'), inB);
    await database.close();
  });

  it('of a collection that is written to has a prefix of its writes', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'a', ...shape });
    await write(database, 'a', ids(100));
    const writing = Promise.all(ids(60, 'w').map((id) => write(database, 'a', [id])));
    const { sequence } = await database.collection('a').clone({ id: 'b' });
    await writing;
    const all = await idsIn(database, 'a');
    assert.deepEqual(await idsIn(database, 'b'), all.slice(0, 100 + sequence - 1));
    await database.close();
  });

  it('reserves its id while it is made', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'a', ...shape });
    const cloning = database.collection('a').clone({ id: 'b' });
    const late = database.createCollection({ id: 'b', ...shape });
    await assert.rejects(late, { code: 'collection_exists' });
    await cloning;
    await database.close();
  });

  it('that fails or is interrupted leaves nothing behind', async () => {
    const state = createMemoryState();
    let failing: 'no' | 'blobs' | 'definition' = 'no';
    const failOnDefinition = async (operations: readonly StoreOperation[]) => {
      const isDefinition = operations.some((found) => found.kind === 'put' && found.key[1] === 'b');
      if (failing === 'definition' && isDefinition) throw new Error('the disk is gone');
    };
    const alive = createMemoryStore({ state, beforeCommit: failOnDefinition });
    const store = overrideStore(alive, {
      async copyBlob(from, to) {
        await alive.copyBlob(from, to);
        if (failing === 'blobs') throw new Error('the disk is gone');
      },
    });
    const database = await openDatabase({ store });
    await database.createCollection({ id: 'a', ...shape });
    await write(database, 'a', ids(150));
    await database.collection('a').clone({ id: 'settled' });
    const used = () => [state.blobs.size, state.entries.values.size, state.entries.logs.size];
    const before = used();
    for (const way of ['blobs', 'definition'] as const) {
      failing = way;
      await assert.rejects(database.collection('a').clone({ id: 'b' }), /the disk is gone/);
      assert.deepEqual(used(), before, way);
    }
    failing = 'no';
    await database.collection('a').clone({ id: 'b' });
    assert.equal(await database.collection('b').count(), 150);
    await database.close();
  });

  it('that a crash interrupts is removed by the next start', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    await database.createCollection({ id: 'a', ...shape });
    await write(database, 'a', ids(150));
    await database.collection('a').clone({ id: 'settled' });
    await database.close();
    const before = state.blobs.size;

    const alive = createMemoryStore({ state });
    let wasInterrupted = false;
    const store = overrideStore(alive, {
      async copyBlob(from, to) {
        await alive.copyBlob(from, to);
        wasInterrupted = true;
        await new Promise(() => {});
      },
    });
    const dying = await openDatabase({ store });
    void dying.collection('a').clone({ id: 'b' });
    while (!wasInterrupted) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(state.blobs.size > before);
    const reopened = await openDatabase({ state });
    assert.equal(state.blobs.size, before);
    assert.equal(reopened.collection('b').exists, false);
    await reopened.close();
  });
});
