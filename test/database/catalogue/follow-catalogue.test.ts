// A database that follows the catalogue of another one, several changes at a time, has the same collections, whatever
// happened to each of them in between.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import type { StoreKey, StoreOperation } from '../../../src/storage/store.js';
import { openDatabase, overrideStore } from '../harness.js';

const shape = {
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

type Change = Extract<StoreOperation, { readonly key: StoreKey }>;

const idsOf = (database: Database) =>
  database.listCollections({ limit: 100 }).collections.map(({ id }) => id);

describe('changes of the catalogue that are followed together', () => {
  for (const [what, change, expected] of [
    ['a collection that is made and deleted', async () => {}, ['kept', 'old']],
    [
      'one that is made, deleted and made again',
      async (leader: Database) => {
        await leader.createCollection({ id: 'new', ...shape });
      },
      ['kept', 'new', 'old'],
    ],
  ] as const) {
    it(`leave ${what}`, async () => {
      const { leader, follow, follower } = await open();
      await leader.createCollection({ id: 'new', ...shape });
      await leader.collection('new').drop();
      await change(leader);
      await follow();
      assert.deepEqual(idsOf(follower), expected);
      assert.deepEqual(idsOf(follower), idsOf(leader));
      // The same ids are free or taken in both databases.
      const created = await follower.createCollection({ id: 'new', ...shape }).then(
        () => true,
        () => false,
      );
      assert.equal(created, !(expected as readonly string[]).includes('new'));
      await leader.close();
      await follower.close();
    });
  }

  it('leave no collection that is changed, or renamed, and then deleted', async () => {
    const { leader, follow, follower } = await open();
    await leader.collection('old').update({ description: 'changed' });
    await leader.collection('old').drop();
    await leader.collection('kept').rename('other');
    await leader.collection('other').rename('another');
    await leader.createCollection({ id: 'kept', ...shape });
    await leader.collection('another').drop();
    await follow();
    assert.deepEqual(idsOf(follower), ['kept']);
    assert.equal(follower.incarnationOf('kept'), leader.incarnationOf('kept'));
    assert.equal(follower.collection('old').exists, false);
    await leader.close();
    await follower.close();
  });
  it('give each collection its own name when names are swapped', async () => {
    const { leader, follow, follower } = await open();
    const before = new Map(['kept', 'old'].map((id) => [id, leader.incarnationOf(id)]));
    await leader.collection('kept').rename('third');
    await leader.collection('old').rename('kept');
    await leader.collection('third').rename('old');
    await leader.collection('old').update({ description: 'was kept' });
    await follow();
    assert.deepEqual(idsOf(follower), ['kept', 'old']);
    assert.equal(follower.incarnationOf('old'), before.get('kept'));
    assert.equal(follower.incarnationOf('kept'), before.get('old'));
    assert.equal(follower.collection('old').record().description, 'was kept');
    assert.equal(follower.collection('kept').record().description, null);
    await leader.close();
    await follower.close();
  });

  it('give each collection its own name when the changes are in the order of the names', async () => {
    const { leader, follow, follower } = await open();
    const kept = leader.incarnationOf('kept');
    await leader.collection('kept').rename('z');
    await leader.collection('old').rename('kept');
    await follow((a, b) => (a.key[1]! < b.key[1]! ? -1 : 1));
    assert.deepEqual(idsOf(follower), ['kept', 'z']);
    assert.equal(follower.incarnationOf('z'), kept);
    assert.equal(follower.incarnationOf('kept'), leader.incarnationOf('kept'));
    await leader.close();
    await follower.close();
  });
});

/**
 * Both have the collections `kept` and `old`; `follow` applies all later commits of the leader to the follower
 * together.
 */
async function open() {
  let committed: StoreOperation[] = [];
  const state = createMemoryState();
  const memory = createMemoryStore({ state });
  const store = overrideStore(memory, {
    commit: async (operations) => {
      committed.push(...operations);
      await memory.commit(operations);
    },
  });
  const leader = await openDatabase({ store });
  const follower = await openDatabase({ state: createMemoryState() });
  const follow = async (order?: (a: Change, b: Change) => number) => {
    const changes = committed
      .filter((operation) => operation.kind === 'put' || operation.kind === 'remove')
      .filter(({ key }) => key[0] === 'collection');
    committed = [];
    // A reordered commit contains only the last operation for each name.
    const last = order && new Map(changes.map((change) => [change.key[1]!, change]));
    const operations = last === undefined ? changes : [...last.values()].sort(order);
    await follower.followCatalogue(operations);
  };
  for (const id of ['kept', 'old']) await leader.createCollection({ id, ...shape });
  await follow();
  return { leader, follower, follow };
}
