// Conditional writes that share a commit: each is checked against the state after the previous writes,
// whether or not that is applied to memory yet.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../src/database/database.js';
import { batchOf, openDatabase } from './harness.js';

const shape = {
  vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

async function openCollection(): Promise<Database> {
  const database = await openDatabase({});
  await database.createCollection({ id: 'c', ...shape });
  return database;
}

const writeIf = (database: Database, id: string, value: number, ifSequence: number) =>
  database.collection('c').write(
    {
      ...batchOf([{ id, values: [value], metadata: '{}' }]),
      ifSequences: Float64Array.of(ifSequence),
    },
    { mode: 'upsert' },
  );

const FAILED = { code: 'precondition_failed' };

describe('conditional writes', () => {
  it('of one vector that are sent together: one of them succeeds', async () => {
    const database = await openCollection();
    const created = await Promise.allSettled([1, 2, 3].map((n) => writeIf(database, 'a', n, 0)));
    assert.deepEqual(
      created.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    );
    const changed = await Promise.allSettled([4, 5, 6].map((n) => writeIf(database, 'a', n, 1)));
    assert.deepEqual(
      changed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected'],
    );
    const { values, sequence } = await database
      .collection('c')
      .get('a', { values: true, metadata: false, sequence: true });
    assert.deepEqual([[...values!], sequence], [[4], 2]);
    await database.close();
  });

  it('see the writes and deletes before them in the same commit', async () => {
    const database = await openCollection();
    const collection = database.collection('c');
    const results = await Promise.allSettled([
      writeIf(database, 'a', 1, 0),
      writeIf(database, 'a', 2, 1),
      collection.deleteVector('a', { ifSequence: 1 }),
      collection.deleteVector('a', { ifSequence: 2 }),
      writeIf(database, 'a', 3, 2),
      writeIf(database, 'a', 4, 0),
      collection.patch('a', { metadata: '{"x":1}', ifSequence: 3 }),
      collection.patch('a', { metadata: '{"x":1}', ifSequence: 4 }),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status === 'fulfilled'),
      [true, true, false, true, false, true, false, true],
    );
    assert.equal(collection.record().sequence, 5);
    await database.close();
  });

  it('hold for a vector that was written often', async () => {
    const database = await openCollection();
    const rows = Array.from({ length: 200 }, (_, i) => ({
      id: `v${i % 70}`,
      values: [i],
      metadata: '{}',
    }));
    for (const row of rows) {
      await database.collection('c').write(batchOf([row]), { mode: 'upsert' });
    }
    await assert.rejects(writeIf(database, 'v0', 1, 71), FAILED);
    assert.equal((await writeIf(database, 'v0', 1, 141)).sequence, 201);
    await database.close();
  });
});

describe('a delete', () => {
  it('that finds nothing names the sequence of the write before it in the same commit', async () => {
    const database = await openCollection();
    const collection = database.collection('c');
    const ids = { kind: 'ids', ids: ['a'] } as const;
    const [, , second] = await Promise.all([
      writeIf(database, 'a', 1, 0),
      collection.delete(ids, { dryRun: false }),
      collection.delete(ids, { dryRun: false }),
    ]);
    // At sequence 1 there would be something to delete.
    assert.deepEqual(second, { deletedCount: 0, sequence: 2 });
    await database.close();
  });

  it('that only counts names the sequence that it counted at', async () => {
    const database = await openCollection();
    const collection = database.collection('c');
    await writeIf(database, 'a', 1, 0);
    const filter = { kind: 'filter', filter: { x: { $exists: false } } } as const;
    const counting = collection.delete(filter, { dryRun: true });
    await Promise.all([writeIf(database, 'b', 1, 0), writeIf(database, 'c', 1, 0)]);
    const { deletedCount, sequence } = await counting;
    assert.deepEqual({ deletedCount, sequence }, { deletedCount: 1, sequence: 1 });
    await database.close();
  });
});
