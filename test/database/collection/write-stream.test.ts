// Streams of writes: a prefix of the stream is durable at any time, and with an idempotency key a retry continues where
// the previous attempt ended.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ErrorCode, SagittaError } from '../../../src/common/errors.js';
import type { IdempotencyRequest, StreamProgress } from '../../../src/database/api/database-api.js';
import type { Database } from '../../../src/database/database.js';
import { createMemoryState, createMemoryStore } from '../../../src/storage/memory-store.js';
import type { StoreOperation } from '../../../src/storage/store.js';
import { batchOf, createTestClock, openDatabase } from '../harness.js';

const KEY: IdempotencyRequest = { scope: 'a POST /vectors', key: 'k', payloadDigest: 'p' };
const DAY_MS = 24 * 60 * 60 * 1000;

const rows = (...ids: string[]) =>
  batchOf(ids.map((id, i) => ({ id, values: [i, 1], metadata: '{}' })));
const encode = (progress: StreamProgress) => ({
  status: 200,
  headers: {},
  body: JSON.stringify(progress),
});
const progressOf = ({ body }: { body: string }) => JSON.parse(body) as StreamProgress;

async function openFilled(options: Parameters<typeof openDatabase>[0] = {}): Promise<Database> {
  const database = await openDatabase(options);
  await createCollection(database);
  return database;
}

function createCollection(database: Database) {
  return database.createCollection({
    id: 'c',
    vectors: { '': { kind: 'dense', dimension: 2, metric: 'dot' } },
    description: null,
    labels: {},
  });
}

/** A store whose commits of rows wait for a gate and fail on request. */
function createGatedStore() {
  const gate = { isBroken: false, appendCounts: [] as number[] };
  let open = () => {};
  let opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const store = createMemoryStore({
    beforeCommit: async (operations: readonly StoreOperation[]) => {
      const appendCount = operations.filter(({ kind }) => kind === 'append').length;
      if (appendCount === 0) return;
      gate.appendCounts.push(appendCount);
      await opened;
      if (gate.isBroken) throw new SagittaError('storage_full', 'no room');
    },
  });
  return {
    store,
    gate,
    open: () => open(),
    shut() {
      opened = new Promise<void>((resolve) => {
        open = resolve;
      });
    },
  };
}

const codesOf = (settled: readonly PromiseSettledResult<void>[]) =>
  settled.map((result) => (result.status === 'fulfilled' ? 'ok' : result.reason.code));

describe('a stream of writes', () => {
  it('writes its batches in their order and counts what is durable', async () => {
    const database = await openFilled();
    const stream = await database.collection('c').openWriteStream({ mode: 'upsert' });
    await Promise.all([stream.write(rows('a', 'b')), stream.write(rows('b', 'd'))]);
    const sequence = database.collection('c').record().sequence;
    const expected = { batchCount: 2, rowCount: 4, insertedCount: 3, updatedCount: 1, sequence };
    assert.deepEqual(stream.progress, expected);
    const { reply, isReplay } = await stream.end(encode);
    assert.deepEqual([progressOf(reply), isReplay], [expected, false]);
    stream.close();
    await database.close();
  });

  it('writes nothing after a batch that is rejected', async () => {
    const database = await openFilled();
    await database.collection('c').write(rows('b'), { mode: 'insert' });
    const stream = await database.collection('c').openWriteStream({ mode: 'insert' });
    const writing = [rows('a'), rows('b'), rows('d')].map((batch) => stream.write(batch));
    assert.deepEqual(codesOf(await Promise.allSettled(writing)), [
      'ok',
      'vector_exists',
      'vector_exists',
    ]);
    await assert.rejects(stream.write(rows('e')), { code: 'vector_exists' });
    await assert.rejects(stream.end(encode), { code: 'vector_exists' });
    assert.equal(stream.progress.rowCount, 1);
    assert.equal(database.collection('c').record().vectorCount, 2);
    // Other writes are not delayed by it.
    await database.collection('c').write(rows('f'), { mode: 'insert' });
    await database.close();
  });

  it('writes nothing after a commit that fails, even when the next one would succeed', async () => {
    const { store, gate, open, shut } = createGatedStore();
    const database = await openFilled({ store });
    const stream = await database.collection('c').openWriteStream({ mode: 'upsert' });
    open();
    await stream.write(rows('a'));
    shut();
    const first = stream.write(rows('b'));
    while (gate.appendCounts.length < 2) await new Promise((resolve) => setImmediate(resolve));
    // Waits for the commit that fails.
    const second = stream.write(rows('d'));
    gate.isBroken = true;
    queueMicrotask(() => {
      open();
    });
    first.catch(() => {
      gate.isBroken = false;
    });
    const settled = await Promise.allSettled([first, second]);
    assert.deepEqual(codesOf(settled), ['storage_full', 'storage_full']);
    assert.equal(stream.progress.rowCount, 1);
    assert.equal(database.collection('c').record().vectorCount, 1);
    await database.close();
  });

  it('belongs to the collection that it was opened on, not to the next one under its id', async () => {
    const database = await openFilled();
    const stream = await database.collection('c').openWriteStream({ mode: 'upsert' });
    await stream.write(rows('a'));
    await database.collection('c').drop();
    await createCollection(database);
    await assert.rejects(stream.write(rows('b')), { code: 'collection_not_found' });
    assert.equal(database.collection('c').record().vectorCount, 0);
    assert.equal(stream.progress.rowCount, 1);
    await database.close();
  });

  it('reuses the memory of its log records without changing what is on disk', async () => {
    const state = createMemoryState();
    const database = await openFilled({ state, limits: { segmentRowsMax: 100_000 } });
    const stream = await database.collection('c').openWriteStream({ mode: 'upsert' });
    const wide = (batch: number, count: number) =>
      batchOf(
        Array.from({ length: count }, (_, i) => ({
          id: `${batch}-${i}`,
          values: [batch, i],
          metadata: `{"text":"${'x'.repeat(40 + batch)}"}`,
        })),
      );
    await Promise.all([8_000, 6_000, 7_000].map((count, i) => stream.write(wide(i, count))));
    stream.close();
    // The first database is not closed, so that only what is in the log is loaded.
    const again = await openDatabase({ state, limits: { segmentRowsMax: 100_000 } });
    assert.equal(again.collection('c').record().vectorCount, 21_000);
    for (const [batch, last] of [7_999, 5_999, 6_999].entries()) {
      const include = { values: true, metadata: true };
      const { values, metadata } = await again.collection('c').get(`${batch}-${last}`, include);
      assert.deepEqual([...values!], [batch, last]);
      assert.equal(metadata!.length, 51 + batch);
    }
    await again.close();
  });
});

describe('a stream of writes under an idempotency key', () => {
  const open = (database: Database, idempotency = KEY) =>
    database.collection('c').openWriteStream({ mode: 'insert', idempotency });

  it('continues after what an earlier attempt has made durable, also after a crash', async () => {
    const state = createMemoryState();
    const database = await openFilled({ state });
    const first = await open(database);
    await Promise.all([
      first.write(rows('a', 'b'), { digest: '1' }),
      first.write(rows('d'), { digest: '2' }),
    ]);
    // The first database is not closed, so that only what was committed survives.
    const again = await openDatabase({ state });
    const second = await open(again);
    assert.equal(second.resumed.rowCount, 3);
    // Generated ids differ from those of the first attempt.
    await second.write(rows('x', 'y'), { digest: '1' });
    await second.write(rows('z'), { digest: '2' });
    await second.write(rows('e'), { digest: '3' });
    const { reply, isReplay } = await second.end(encode);
    second.close();
    const progress = { batchCount: 3, rowCount: 4, insertedCount: 4, updatedCount: 0, sequence: 3 };
    assert.deepEqual([progressOf(reply), isReplay], [progress, false]);
    assert.deepEqual(
      (await again.collection('c').list({})).vectors.map(({ id }) => id),
      ['a', 'b', 'd', 'e'],
    );
    await again.close();
  });

  it('is continued by one attempt at a time', async () => {
    const database = await openFilled();
    const first = await open(database);
    await first.write(rows('a'), { digest: '1' });
    const busy = { code: 'idempotency_in_flight' };
    await assert.rejects(open(database), busy);
    first.close();
    const second = await open(database);
    assert.equal(second.resumed.rowCount, 1);
    await assert.rejects(open(database), busy);
    second.close();
    await database.close();
  });

  it('commits its progress in the transaction of each batch', async () => {
    const commits: string[][] = [];
    const store = createMemoryStore({
      beforeCommit: async (operations) => {
        commits.push(operations.map(({ kind }) => kind));
      },
    });
    const database = await openFilled({ store });
    commits.length = 0;
    const stream = await open(database);
    await stream.write(rows('a'), { digest: '1' });
    await stream.write(rows('b'), { digest: '2' });
    assert.deepEqual(commits, [
      ['append', 'put', 'put'],
      ['append', 'put'],
    ]);
    await database.close();
  });

  it('replays the reply of a complete stream, and rejects another stream', async () => {
    const database = await openFilled();
    const run = async (digests: readonly string[]) => {
      const stream = await open(database);
      try {
        for (const digest of digests) await stream.write(rows(`id-${digest}`), { digest });
        return await stream.end(encode);
      } finally {
        stream.close();
      }
    };
    const first = await run(['1', '2', '3']);
    const second = await run(['1', '2', '3']);
    assert.deepEqual([first.isReplay, second.isReplay], [false, true]);
    assert.deepEqual(second.reply, first.reply);
    for (const other of [['1', '2'], ['1', '2', '3', '4'], ['1', '9', '3'], []]) {
      await assert.rejects(run(other), { code: 'idempotency_key_reused' }, other.join());
    }
    assert.equal(database.collection('c').record().vectorCount, 3);
    await database.close();
  });

  it('rejects a stream that differs from the durable prefix, and writes none of it', async () => {
    const database = await openFilled();
    const first = await open(database);
    await first.write(rows('a'), { digest: '1' });
    await first.write(rows('b'), { digest: '2' });
    first.close();
    for (const digests of [['1', '3', '4'], ['2', '1', '4'], ['1']]) {
      const stream = await open(database);
      const writing = digests.map((digest) => stream.write(rows(`new-${digest}`), { digest }));
      const settled = await Promise.allSettled([...writing, stream.end(encode).then(() => {})]);
      assert.ok(codesOf(settled).includes('idempotency_key_reused'), digests.join());
      stream.close();
    }
    assert.equal(database.collection('c').record().vectorCount, 2);
    await database.close();
  });

  it('is claimed by one attempt at a time, and apart from other requests with the key', async () => {
    const database = await openFilled();
    const first = await open(database);
    const codeOf = async (work: () => Promise<unknown>): Promise<ErrorCode | null> => {
      try {
        await work();
        return null;
      } catch (error) {
        return (error as SagittaError).code;
      }
    };
    assert.equal(await codeOf(() => open(database)), 'idempotency_in_flight');
    assert.equal(
      await codeOf(() => open(database, { ...KEY, payloadDigest: 'other' })),
      'idempotency_key_reused',
    );
    await first.write(rows('a'), { digest: '1' });
    first.close();
    const other = { ...KEY, payloadDigest: 'a JSON body' };
    await assert.rejects(
      database.runIdempotent(other, async () => encode(first.progress)),
      { code: 'idempotency_key_reused' },
    );
    (await open(database)).close();
    await database.close();
  });

  it('starts from the beginning in a collection that replaced the one it had written to', async () => {
    const database = await openFilled();
    const first = await open(database);
    await first.write(rows('a'), { digest: '1' });
    first.close();
    await database.collection('c').drop();
    await createCollection(database);
    const second = await open(database);
    assert.equal(second.resumed.rowCount, 0);
    await second.write(rows('a'), { digest: '1' });
    await second.end(encode);
    second.close();
    assert.equal(database.collection('c').record().vectorCount, 1);
    await database.close();
  });

  it('is kept while it makes progress, and removed after it has expired', async () => {
    const clock = createTestClock();
    const state = createMemoryState();
    const database = await openFilled({ clock, state });
    const first = await open(database);
    for (let part = 0; part < 4; part++) {
      await first.write(rows(`a${part}`), { digest: `${part}` });
      clock.nowMs += 0.6 * DAY_MS;
    }
    first.close();
    const second = await open(database);
    assert.equal(second.resumed.rowCount, 4);
    second.close();
    const entries = () =>
      [...createMemoryStore({ state }).list([])].filter(({ key }) => key[0] === 'idempotency')
        .length;
    assert.equal(entries(), 2, 'an entry, and when it expires');
    clock.nowMs += DAY_MS;
    const third = await open(database);
    assert.equal(third.resumed.rowCount, 0);
    third.close();
    await database.runIdempotent({ ...KEY, key: 'k2' }, async () => encode(first.progress));
    await database.runIdempotent({ ...KEY, key: 'k3' }, async () => encode(first.progress));
    assert.equal(entries(), 4, 'of k2 and k3 alone');
    await database.close();
  });
});
