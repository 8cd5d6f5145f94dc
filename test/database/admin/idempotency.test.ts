// Idempotency keys: one effect for repeated requests, across crashes, and no trace of failed ones.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SagittaError } from '../../../src/common/errors.js';
import type { WriteResult } from '../../../src/database/api/database-api.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import { batchOf, createTestClock, openDatabase } from '../harness.js';

const REQUEST = { scope: 'anonymous POST /vectors', key: 'k1', payloadDigest: 'd1' };
const replyOf = (body: string, status = 200) => ({ status, headers: {}, body });

function write(database: Database, id: string, request = REQUEST) {
  return database.runIdempotent(request, async (attach) => {
    const encode = (result: WriteResult) => replyOf(JSON.stringify(result));
    const result = await database
      .collection('c')
      .write(batchOf([{ id, values: [1, 2], metadata: '{}' }]), {
        mode: 'upsert',
        attachedReply: attach(encode),
      });
    return encode(result);
  });
}

async function openFilled(options: Parameters<typeof openDatabase>[0]): Promise<Database> {
  const database = await openDatabase(options);
  await database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  });
  return database;
}

describe('an idempotency key', () => {
  it('has one effect and gives the same reply again, also after a crash', async () => {
    const state = createMemoryState();
    const database = await openFilled({ state });
    const first = await write(database, 'a');
    const second = await write(database, 'a');
    assert.deepEqual([first.isReplay, second.isReplay], [false, true]);
    assert.deepEqual(second.reply, first.reply);
    // The first database is not closed, so that only what was committed survives.
    const again = await openDatabase({ state });
    const third = await write(again, 'a');
    assert.deepEqual(third, second);
    assert.equal(again.collection('c').record().sequence, 1);
    await again.close();
  });

  it('stores a reply in the form that other versions read', async () => {
    const store = createMemoryStore();
    const database = await openFilled({ store });
    await write(database, 'a');
    const [stored] = [...store.list(['idempotency', 'reply'])];
    const { expiresAtMs, ...entry } = JSON.parse(Buffer.from(stored!.value).toString());
    assert.equal(typeof expiresAtMs, 'number');
    const body = '{"insertedCount":1,"updatedCount":0,"sequence":1}';
    assert.deepEqual(entry, { payloadDigest: 'd1', reply: { status: 200, headers: {}, body } });
    await database.close();
  });

  it('commits the reply in the transaction of the effect', async () => {
    const commits: string[][] = [];
    const store = createMemoryStore({
      beforeCommit: async (operations) => {
        commits.push(operations.map(({ kind }) => kind));
      },
    });
    const database = await openFilled({ store });
    commits.length = 0;
    await write(database, 'a');
    assert.deepEqual(commits, [['append', 'put', 'put']]);
    await database.close();
  });

  it('is rejected with another payload, and while its request runs', async () => {
    const database = await openFilled({});
    const running = write(database, 'a');
    await assert.rejects(write(database, 'a'), { code: 'idempotency_in_flight' });
    await assert.rejects(write(database, 'a', { ...REQUEST, payloadDigest: 'd2' }), {
      code: 'idempotency_key_reused',
    });
    await running;
    await assert.rejects(write(database, 'b', { ...REQUEST, payloadDigest: 'd2' }), {
      code: 'idempotency_key_reused',
    });
    assert.equal(database.collection('c').record().vectorCount, 1);
    const elsewhere = await write(database, 'b', { ...REQUEST, scope: 'another route' });
    assert.equal(elsewhere.isReplay, false);
    await database.close();
  });

  it('stores nothing when the write fails in the service, and stores a rejection', async () => {
    let isBroken = false;
    const store = createMemoryStore({
      beforeCommit: async () => {
        if (isBroken) throw new SagittaError('storage_full', 'no room');
      },
    });
    const database = await openFilled({ store });
    isBroken = true;
    await assert.rejects(write(database, 'a'), { code: 'storage_full' });
    isBroken = false;
    assert.equal(database.collection('c').record().vectorCount, 0);
    assert.equal((await write(database, 'a')).isReplay, false);

    const refusal = { ...REQUEST, key: 'k2' };
    const refuse = () => database.runIdempotent(refusal, async () => replyOf('no', 409));
    assert.deepEqual(await refuse(), { reply: replyOf('no', 409), isReplay: false });
    assert.deepEqual(await refuse(), { reply: replyOf('no', 409), isReplay: true });
    await database.close();
  });

  it('keeps its new reply when it is used again after it expired, beside other keys', async () => {
    const clock = createTestClock();
    const database = await openFilled({ clock });
    const requests = ['k1', 'k2', 'k3'].map((key) => ({ ...REQUEST, key }));
    const writeAll = () => Promise.all(requests.map((each) => write(database, each.key, each)));
    await writeAll();
    clock.nowMs += 24 * 60 * 60 * 1000 + 1;
    // Both replies are in one commit, each with the removal of expired entries.
    const again = await writeAll();
    const replayed = await writeAll();
    assert.deepEqual(
      replayed.map(({ reply, isReplay }) => [reply, isReplay]),
      again.map(({ reply }) => [reply, true]),
    );
    await database.close();
  });

  it('is refused beyond the maximum number of keys, until the oldest expires', async () => {
    const clock = createTestClock();
    const database = await openFilled({ clock, limits: { idempotencyKeysMax: 2 } });
    const request = (key: string) => ({ ...REQUEST, key });
    await write(database, 'a', request('k1'));
    clock.nowMs += 60_000;
    await write(database, 'b', request('k2'));
    await assert.rejects(write(database, 'c', request('k3')), {
      code: 'overloaded',
      message: /^2 idempotency keys are stored.*the oldest expires in 86340 s/,
      retryAfterSeconds: 86_340,
    });
    assert.equal((await write(database, 'a', request('k1'))).isReplay, true);
    clock.nowMs += 24 * 60 * 60 * 1000 - 60_000;
    assert.equal((await write(database, 'c', request('k3'))).isReplay, false);
    await database.close();
  });

  it('does not block other requests when its reply is damaged', async () => {
    const clock = createTestClock();
    const store = createMemoryStore();
    const database = await openFilled({ store, clock });
    await write(database, 'a');
    const [damaged] = [...store.list(['idempotency', 'reply'])];
    const get = store.get.bind(store);
    store.get = (key) => {
      if (key.join() !== damaged!.key.join()) return get(key);
      throw new SagittaError('data_corrupt', 'The file is damaged.');
    };
    await assert.rejects(write(database, 'a'), { code: 'data_corrupt' });
    clock.nowMs += 24 * 60 * 60 * 1000 + 1;
    for (const key of ['k2', 'k3']) {
      const { isReplay } = await write(database, key, { ...REQUEST, key });
      assert.equal(isReplay, false);
    }
    await assert.rejects(write(database, 'a'), { code: 'data_corrupt' });
    assert.equal(database.collection('c').record().sequence, 3);
    await database.close();
  });

  it('expires, and its entry is removed', async () => {
    const clock = createTestClock();
    const state = createMemoryState();
    const database = await openFilled({ clock, state });
    await write(database, 'a');
    clock.nowMs += 24 * 60 * 60 * 1000 + 1;
    assert.equal((await write(database, 'a')).isReplay, false);
    clock.nowMs += 24 * 60 * 60 * 1000 + 1;
    await write(database, 'b', { ...REQUEST, key: 'k2' });
    await write(database, 'b', { ...REQUEST, key: 'k3' });
    const kept = [...createMemoryStore({ state }).list([])].filter(
      ({ key }) => key[0] === 'idempotency',
    );
    assert.equal(kept.length, 4, 'a reply and its expiry for k2 and k3');
    await database.close();
  });
});
