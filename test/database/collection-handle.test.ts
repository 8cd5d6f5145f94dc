// A handle refers to the collection that it found, and to no other one with the same id.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CollectionHandle } from '../../src/database/collection-handle.js';
import type { Database } from '../../src/database/database.js';
import { batchOf, openDatabase } from './harness.js';

const NO_CHANGE = { kind: 'patch', text: '{}' } as const;
const INCLUDE = { values: false, metadata: false };

/** Every operation of a handle. */
const OPERATIONS: readonly (readonly [string, (handle: CollectionHandle) => unknown])[] = [
  ['requireExists', (handle) => handle.requireExists()],
  ['vectors', (handle) => handle.vectors],
  ['record', (handle) => handle.record()],
  ['loadedRecord', (handle) => handle.loadedRecord()],
  ['update', (handle) => handle.update({ description: 'changed' })],
  ['write', (handle) => handle.write(oneVector(), { mode: 'upsert' })],
  ['openWriteStream', (handle) => handle.openWriteStream({ mode: 'upsert' })],
  ['openBulkStream', (handle) => handle.openBulkStream(() => Promise.reject())],
  ['patch', (handle) => handle.patch('a', { metadata: '{}' })],
  ['delete', (handle) => handle.delete({ kind: 'all' }, { dryRun: false })],
  ['deleteVector', (handle) => handle.deleteVector('a')],
  ['get', (handle) => handle.get('a', INCLUDE)],
  ['fetch', (handle) => handle.fetch(['a'], INCLUDE)],
  ['list', (handle) => handle.list({})],
  ['countFound', (handle) => handle.countFound()],
  ['count', (handle) => handle.count()],
  ['query', (handle) => handle.query({ vector: Float32Array.of(1, 0) })],
  ['openQuerySession', (handle) => handle.openQuerySession()],
  ['recall', (handle) => handle.recall({ vectors: [Float32Array.of(1, 0)], ids: [['a']] })],
  ['digest', (handle) => handle.digest({})],
  ['scan', (handle) => handle.scan({ includeValues: false, includeMetadata: false })],
  ['join', (handle) => handle.join({ topK: 1 })],
  ['project', (handle) => handle.project(PROJECTION)],
  ['updateMetadata', (handle) => handle.updateMetadata({ kind: 'all' }, { change: NO_CHANGE })],
  ['aggregate', (handle) => handle.aggregate({})],
  ['schema', (handle) => handle.schema({})],
  ['segments', (handle) => handle.segments({})],
  ['embedding', (handle) => handle.embedding],
  ['clone', (handle) => handle.clone({ id: 'd' })],
  ['rename', (handle) => handle.rename('d')],
  ['drop', (handle) => handle.drop()],
];

const PROJECTION = { sample: { count: 1, seed: 0 }, dimensions: 2, neighborCount: 0 };

function oneVector() {
  return batchOf([{ id: 'a', values: [1, 0], metadata: '{}' }]);
}

async function create(database: Database): Promise<void> {
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  });
  await database.collection('c').write(oneVector(), { mode: 'upsert' });
}

async function assertRefused(handle: CollectionHandle, message: RegExp): Promise<void> {
  for (const [name, run] of OPERATIONS) {
    await assert.rejects(
      async () => run(handle),
      (error: { code?: string; message: string }) =>
        error.code === 'collection_not_found' && message.test(error.message),
      name,
    );
  }
}

describe('the handle of a collection', () => {
  it('has no operation that these tests leave out', async () => {
    const database = await openDatabase({});
    const prototype: unknown = Object.getPrototypeOf(database.collection('c'));
    const operations = Object.getOwnPropertyNames(prototype).filter(
      (name) => name !== 'constructor' && name !== 'exists',
    );
    assert.deepEqual(operations.sort(), OPERATIONS.map(([name]) => name).sort());
    await database.close();
  });

  it('rejects every operation on a collection that does not exist', async () => {
    const database = await openDatabase({});
    const handle = database.collection('c');
    assert.equal(handle.exists, false);
    await assertRefused(handle, /"c"/);
    await create(database);
    await assertRefused(
      handle,
      /created or replaced while the request was read; send the request again/,
    );
    await database.close();
  });

  it('rejects every operation once the collection was deleted, and when another one has its id', async () => {
    const database = await openDatabase({});
    await create(database);
    const handle = database.collection('c');
    assert.equal(handle.exists, true);
    assert.deepEqual(handle.vectors, { '': { kind: 'dense', dimension: 2, metric: 'dot' } });
    await database.collection('c').drop();
    await assertRefused(handle, /"c"/);
    await create(database);
    await assertRefused(
      handle,
      /created or replaced while the request was read; send the request again/,
    );
    assert.equal(database.collection('c').record().vectorCount, 1);
    await database.close();
  });

  it('sees changes of the record and of the vectors since it was made', async () => {
    const database = await openDatabase({});
    await create(database);
    const handle = database.collection('c');
    await database.collection('c').update({ description: 'changed' });
    await database.collection('c').deleteVector('a');
    assert.deepEqual([handle.record().description, handle.record().vectorCount], ['changed', 0]);
    assert.equal(await handle.count(), 0);
    await database.close();
  });
});
