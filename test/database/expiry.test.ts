// Vectors that expire: when they are deleted, which snapshots still see them, and what their expiry survives.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../src/database/database.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../src/storage/memory-store.js';
import { eventually } from '../support/waiting.js';
import {
  batchOf,
  createCrashingStore,
  createTestClock,
  openDatabase,
  type TestClock,
} from './harness.js';

const MINUTE_MS = 60_000;
const shape = {
  vectors: { '': { kind: 'dense', dimension: 1, metric: 'dot' } },
  description: null,
  labels: {},
} as const;
const NEVER = Number.POSITIVE_INFINITY;
const DEFAULT = Number.NaN;

async function openWith(options: {
  state?: MemoryState;
  clock?: TestClock;
  ttlSeconds?: number;
}): Promise<{ database: Database; clock: TestClock; state: MemoryState }> {
  const { state = createMemoryState(), clock = createTestClock(), ttlSeconds = null } = options;
  const database = await openDatabase({ state, clock, limits: { retentionMs: 10 * MINUTE_MS } });
  await database.createCollection({ id: 'c', ...shape, ttlSeconds });
  return { database, clock, state };
}

/** Writes vectors by id with their expiries. */
const write = (database: Database, expiries: Readonly<Record<string, number>>) =>
  database.collection('c').write(
    {
      ...batchOf(Object.keys(expiries).map((id) => ({ id, values: [1], metadata: '{}' }))),
      expiresAtMs: Float64Array.from(Object.values(expiries)),
    },
    { mode: 'upsert' },
  );

async function idsIn(database: Database, name = 'c'): Promise<string[]> {
  const { vectors } = await database.collection(name).list({ limit: 1_000 });
  return vectors.map(({ id }) => id);
}

async function expiryOf(database: Database, id: string): Promise<string | undefined> {
  const include = { values: false, metadata: false, expiry: true };
  return (await database.collection('c').get(id, include)).expiresAt;
}

async function pass(database: Database, clock: TestClock, ms: number): Promise<void> {
  clock.nowMs += ms;
  await database.deleteExpired();
}

describe('a vector that expires', () => {
  it('is deleted then, by a write of its own', async () => {
    const { database, clock } = await openWith({});
    const start = clock.nowMs;
    await write(database, { a: start + MINUTE_MS, b: start + 2 * MINUTE_MS, c: NEVER, d: DEFAULT });
    assert.equal(await expiryOf(database, 'a'), new Date(start + MINUTE_MS).toISOString());
    assert.equal(await expiryOf(database, 'd'), undefined);
    await pass(database, clock, MINUTE_MS - 1);
    assert.deepEqual(await idsIn(database), ['a', 'b', 'c', 'd']);
    await pass(database, clock, 1);
    assert.deepEqual(await idsIn(database), ['b', 'c', 'd']);
    assert.equal(database.collection('c').record().sequence, 2);
    await pass(database, clock, 100 * MINUTE_MS);
    assert.deepEqual(await idsIn(database), ['c', 'd']);
    assert.equal(database.collection('c').record().sequence, 3);
    await pass(database, clock, 100 * MINUTE_MS);
    assert.equal(database.collection('c').record().sequence, 3);
    await database.close();
  });

  it('is deleted when asked for while a sweep that looked before is under way', async () => {
    const { database, clock } = await openWith({});
    await write(database, { a: clock.nowMs + 1 });
    const before = database.deleteExpired();
    await pass(database, clock, 1);
    assert.deepEqual(await idsIn(database), []);
    await before;
    await database.close();
  });

  it('is deleted again and again without being asked for', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { database, clock } = await openWith({});
    for (const id of ['a', 'b']) {
      await write(database, { [id]: clock.nowMs + 1 });
      clock.nowMs += 1;
      t.mock.timers.tick(1_000);
      await eventually('it is gone', async () => (await idsIn(database)).length === 0);
    }
    await database.close();
  });

  it('stays on the pages of a list that began before', async () => {
    const { database, clock } = await openWith({});
    await write(database, { a: clock.nowMs + 1, b: clock.nowMs + 1, c: clock.nowMs + 1 });
    const first = await database.collection('c').list({ limit: 1 });
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual(await idsIn(database), []);
    const next = await database.collection('c').list({ cursor: first.nextCursor });
    assert.deepEqual(
      next.vectors.map(({ id }) => id),
      ['b'],
    );
    await database.close();
  });

  it('has the time to live of the collection unless it states its own', async () => {
    const { database, clock } = await openWith({ ttlSeconds: 60 });
    await write(database, { a: DEFAULT, b: NEVER, c: clock.nowMs + 3 * MINUTE_MS });
    await database.collection('c').write(batchOf([{ id: 'd', values: [1], metadata: '{}' }]), {
      mode: 'upsert',
    });
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual(await idsIn(database), ['b', 'c']);
    await database.collection('c').update({ ttlSeconds: null });
    await write(database, { e: DEFAULT });
    await pass(database, clock, 100 * MINUTE_MS);
    assert.deepEqual(await idsIn(database), ['b', 'e']);
    await database.close();
  });

  it('expires anew when it is written again, and keeps its expiry when it is patched', async () => {
    const { database, clock } = await openWith({});
    const soon = clock.nowMs + MINUTE_MS;
    await write(database, { again: soon, patched: soon, updated: soon, kept: soon, moved: soon });
    await write(database, { again: NEVER });
    const collection = database.collection('c');
    await collection.patch('patched', { metadata: '{"x":1}' });
    await collection.patch('kept', { expiresAtMs: NEVER });
    await collection.patch('moved', { expiresAtMs: soon + MINUTE_MS });
    const change = { kind: 'patch', text: '{"y":1}' } as const;
    await collection.updateMetadata({ kind: 'ids', ids: ['updated', 'kept'] }, { change });
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual((await idsIn(database)).sort(), ['again', 'kept', 'moved']);
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual((await idsIn(database)).sort(), ['again', 'kept']);
    await database.close();
  });
});

describe('expiries', () => {
  it('survive a restart, a crash, checkpoints and compactions', async () => {
    const state = createMemoryState();
    const clock = createTestClock();
    const { database } = await openWith({ state, clock });
    const soon = clock.nowMs + MINUTE_MS;
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`v${i}`, soon]));
    await write(database, many);
    await write(database, { v7: NEVER, later: soon + MINUTE_MS });
    await database
      .collection('c')
      .delete(
        { kind: 'ids', ids: Array.from({ length: 100 }, (_, i) => `v${i + 50}`) },
        { dryRun: false },
      );
    await database.close();

    const { store, die } = createCrashingStore(state);
    const crashed = await openDatabase({ store, clock, limits: { retentionMs: 1 } });
    clock.nowMs += 10;
    await crashed.collection('c').write(batchOf([{ id: 'n', values: [1], metadata: '{}' }]), {
      mode: 'upsert',
    });
    die();
    const reopened = await openDatabase({ state, clock });
    assert.equal(await reopened.collection('c').count(), 102);
    await pass(reopened, clock, MINUTE_MS);
    assert.deepEqual((await idsIn(reopened)).sort(), ['later', 'n', 'v7']);
    await pass(reopened, clock, MINUTE_MS);
    assert.deepEqual((await idsIn(reopened)).sort(), ['n', 'v7']);
    await reopened.close();
    const keys = [...createMemoryStore({ state }).list([])].map(({ key }) => key[0]);
    assert.ok(!keys.includes('expiry'), 'no expiry is left when all have passed');
  });

  it('that passed while the process was down take effect at the next start', async () => {
    const { database, clock, state } = await openWith({});
    await write(database, { a: clock.nowMs + MINUTE_MS, b: NEVER });
    await database.close();
    clock.nowMs += MINUTE_MS;
    const reopened = await openDatabase({ state, clock });
    await reopened.deleteExpired();
    assert.deepEqual(await idsIn(reopened), ['b']);
    await reopened.close();
  });

  it('belong to a clone as well, and only those of its rows', async () => {
    const { database, clock } = await openWith({});
    const soon = clock.nowMs + MINUTE_MS;
    await write(database, { a: soon, b: NEVER });
    const cloning = database.collection('c').clone({ id: 'copy' });
    const { sequence } = await cloning;
    await write(database, { late: soon });
    // At the sequence at which the source has a vector that expires.
    await database
      .collection('copy')
      .write(batchOf([{ id: 'late', values: [1], metadata: '{}' }]), {
        mode: 'upsert',
      });
    assert.equal(database.collection('copy').record().sequence, sequence + 1);
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual(await idsIn(database), ['b']);
    assert.deepEqual(await idsIn(database, 'copy'), ['b', 'late']);
    await database.collection('copy').drop();
    await database.close();
  });

  it('of more vectors than one write deletes take several', async () => {
    const { database, clock } = await openWith({});
    const soon = clock.nowMs + MINUTE_MS;
    const expiries = Array.from({ length: 10_001 }, (_, i) => [`v${i}`, soon] as const);
    await write(database, Object.fromEntries(expiries));
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual([await idsIn(database), database.collection('c').record().sequence], [[], 3]);
    await database.close();
  });

  it('of vectors that were written again are removed when most of them are', async () => {
    const { database, clock, state } = await openWith({ ttlSeconds: 86_400 });
    const rows = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`v${i}`, DEFAULT]));
    for (let i = 0; i < 25; i++) await write(database, rows);
    const stored = () =>
      [...createMemoryStore({ state }).list([])].filter(({ key }) => key[0] === 'expiry').length;
    assert.equal(stored(), 25);
    await database.deleteExpired();
    assert.equal(stored(), 1);
    assert.equal(await database.collection('c').count(), 500);
    await pass(database, clock, 86_400_000);
    assert.equal(await database.collection('c').count(), 0);
    await database.close();
  });

  it('are tried again when the deletion fails', async () => {
    const state = createMemoryState();
    const clock = createTestClock();
    let isFull = false;
    const store = createMemoryStore({
      state,
      beforeCommit: async () => {
        if (isFull) throw new Error('the disk is full');
      },
    });
    const database = await openDatabase({ store, clock });
    await database.createCollection({ id: 'c', ...shape });
    await write(database, { a: clock.nowMs + 1 });
    isFull = true;
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual(await idsIn(database), ['a']);
    isFull = false;
    await pass(database, clock, MINUTE_MS);
    assert.deepEqual(await idsIn(database), []);
    await database.close();
  });
});
