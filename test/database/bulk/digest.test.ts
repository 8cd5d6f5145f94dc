// Digests of collections are equal for equal rows in any segments, and differ for any other difference.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import { batchOf, openDatabase, type TestVector } from '../harness.js';

const shape = {
  vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

const row = (id: string, y = 1, metadata = '{"a":1}'): TestVector => ({
  id,
  values: [0, y],
  metadata,
});

async function databaseWith(
  writes: readonly (readonly TestVector[])[],
  options: Parameters<typeof openDatabase>[0] = {},
): Promise<Database> {
  const database = await openDatabase(options);
  await database.createCollection({ id: 'c', ...shape });
  for (const rows of writes) {
    await database.collection('c').write(batchOf(rows), { mode: 'upsert' });
  }
  return database;
}

async function digestOf(writes: readonly (readonly TestVector[])[]): Promise<string> {
  const database = await databaseWith(writes);
  const { digest } = await database.collection('c').digest({});
  await database.close();
  return digest;
}

describe('a digest of a collection', () => {
  it('is the same however the rows are stored, and after a restart', async () => {
    const writes = Array.from({ length: 40 }, (_, i) => [row(`v${i}`, i), row(`v${i % 7}`, -i)]);
    const state = createMemoryState();
    const store = createMemoryStore({ state });
    const small = await databaseWith(writes, { store, limits: { segmentRowsMax: 8 } });
    const large = await databaseWith(writes);
    const expected = await large.collection('c').digest({});
    assert.equal(expected.sequence, 40);
    assert.equal(expected.vectorCount, 40);
    assert.match(expected.digest, /^[0-9a-f]{64}$/);
    assert.deepEqual(await small.collection('c').digest({}), expected);
    await small.close();
    const again = await openDatabase({ store: createMemoryStore({ state }) });
    await again.loaded;
    assert.deepEqual(await again.collection('c').digest({}), expected);
    await again.close();
    await large.close();
  });

  it('differs with an id, a value, metadata or a sequence', async () => {
    const digests = [
      await digestOf([[row('a'), row('b')]]),
      await digestOf([[row('a'), row('c')]]),
      await digestOf([[row('a'), row('b', 1.0000001)]]),
      await digestOf([[row('a'), row('b', 1, '{"a":2}')]]),
      await digestOf([[row('a')], [row('b')]]),
      await digestOf([[row('a')]]),
      await digestOf([]),
    ];
    assert.equal(new Set(digests).size, digests.length);
    assert.equal(digests.at(-1), '0'.repeat(64));
  });

  it('does not depend on the order of rows in a write', async () => {
    assert.equal(await digestOf([[row('a'), row('b')]]), await digestOf([[row('b'), row('a')]]));
  });

  it('of a part and of the rest add up to that of the whole', async () => {
    const sum = (digests: readonly string[]) => {
      const words = new Uint32Array(8);
      for (const digest of digests) {
        const bytes = Buffer.from(digest, 'hex');
        let carry = 0;
        for (let word = 0; word < 8; word++) {
          const total = words[word]! + bytes.readUInt32LE(4 * word) + carry;
          words[word] = total;
          carry = total > 0xffffffff ? 1 : 0;
        }
      }
      return Buffer.from(words.buffer).toString('hex');
    };
    const rows = Array.from({ length: 20 }, (_, i) => row(`v${i}`, i));
    const parts = [await digestOf([rows.slice(0, 7)]), await digestOf([rows.slice(7)])];
    assert.equal(sum(parts), await digestOf([rows]));
  });

  it('can be computed at an earlier sequence, and waits for a later one', async () => {
    const database = await databaseWith([[row('a')], [row('b')]]);
    const collection = database.collection('c');
    const before = await collection.digest({});
    await collection.delete({ kind: 'ids', ids: ['a'] }, { dryRun: false });
    await collection.write(batchOf([row('b', 7)]), { mode: 'upsert' });
    assert.notEqual((await collection.digest({})).digest, before.digest);
    assert.deepEqual(await collection.digest({ sequence: 2 }), before);
    const later = collection.digest({ sequence: 5 });
    await collection.write(batchOf([row('e')]), { mode: 'upsert' });
    assert.deepEqual(await later, await collection.digest({}));
    await database.close();
  });

  it('of a sequence that is never reached is refused after a while', async () => {
    const database = await databaseWith([[row('a')]], { limits: { requestMsMax: 50 } });
    // The timer of the request does not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    await assert.rejects(database.collection('c').digest({ sequence: 9 }), {
      code: 'deadline_exceeded',
    });
    clearInterval(alive);
    await database.close();
  });
});
