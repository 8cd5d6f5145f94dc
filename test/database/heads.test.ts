// Heads of segments: those of sealed ones are made in the background before the file is written, once; later rows get
// theirs as they arrive. Readers see either none or a complete one, and nothing depends on whether there is one.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RowCodes } from '../../src/common/types.js';
import type { Database } from '../../src/database/database.js';
import type { Engine } from '../../src/engine/core/engine.js';
import { createMemoryState, createMemoryStore } from '../../src/storage/memory-store.js';
import { createRandom, randomInt } from '../../src/tools/selftest/blocks.js';
import { withResolvers } from '../support/waiting.js';
import { columnOf, dense } from '../vector-columns.js';
import { basisOf, createCheckedEncoder, createWatchingEngine, DIMENSION } from './checked-codes.js';
import {
  batchOf,
  createCrashingStore,
  createTestClock,
  openDatabase,
  type TestVector,
  testSeed,
} from './harness.js';

const SHAPE = { kind: 'dense', dimension: DIMENSION, metric: 'dot' } as const;
const SPACE = { vectors: { '': SHAPE }, description: null, labels: {} } as const;
const WRITE = { mode: 'upsert' } as const;
/** Rows of a full segment. */
const SEGMENT_ROWS = 64;

/** Rows of which the last has the best score. */
const rowsFrom = (from: number, count: number): TestVector[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `v${from + i}`,
    values: [from + i + 1, 1, 0],
    metadata: '{}',
  }));

async function write(database: Database, from: number, count: number): Promise<void> {
  await database.collection('c').write(batchOf(rowsFrom(from, count)), WRITE);
}

async function bestIds(database: Database): Promise<string[]> {
  const request = { vector: Float32Array.of(1, 0, 0), topK: 3 };
  const { matches } = await database.collection('c').query(request);
  return matches.map(({ id }) => id);
}

async function settle(): Promise<void> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether the codes of each searched block have a head. */
async function headsOf(database: Database, watching: { lastCodes: readonly RowCodes[] }) {
  await bestIds(database);
  return watching.lastCodes.map(({ head }) => head !== null);
}

/** A database whose encoder trains as the function says. */
async function openWith(
  train: Parameters<typeof createCheckedEncoder>[1],
  options: Omit<Parameters<typeof openDatabase>[0], 'engine'> = {},
) {
  const encoder = createCheckedEncoder('heads', train);
  const watching = createWatchingEngine(encoder);
  const engine: Engine = watching.engine;
  const database = await openDatabase({ ...options, engine });
  return { encoder, watching, database };
}

describe('the heads of segments', () => {
  it('are made when segments are sealed, with the last basis, and are in the files', async () => {
    const state = createMemoryState();
    const previousBases: (Uint8Array | null)[] = [];
    const first = await openWith(
      async (_, previous) => {
        previousBases.push(previous);
        return previous ?? basisOf(2);
      },
      { state },
    );
    await first.database.createCollection({ id: 'c', ...SPACE });
    await write(first.database, 0, SEGMENT_ROWS * 3 + 5);
    await settle();
    assert.deepEqual(await headsOf(first.database, first.watching), [true, true, true, true]);
    const bases = first.watching.lastCodes.map(({ basis }) => basis);
    assert.deepEqual(previousBases, [null, bases[0], bases[0]]);
    assert.equal(new Set(bases).size, 1, 'segments share one array');
    await first.database.close();

    const second = await openWith(async () => null, { state });
    assert.deepEqual(await headsOf(second.database, second.watching), [true, true, true, true]);
    const loaded = second.watching.lastCodes.map(({ basis }) => basis);
    assert.deepEqual(loaded[0], bases[0]);
    assert.equal(new Set(loaded).size, 1, 'loaded segments do, too');
    assert.deepEqual([second.encoder.encodedSegmentCount, second.encoder.trainedCount], [0, 0]);
    await second.database.close();
  });

  it('have rows as they arrive, in any numbers, until a better basis is found for all of them', async () => {
    const seed = testSeed();
    console.log(`SAGITTA_TEST_SEED=${seed}`);
    const random = createRandom(seed);
    const state = createMemoryState();
    const limits = { segmentRowsMax: 512 };
    let trained = 0;
    // The head of every second segment remains in the basis in which its rows arrived.
    const train = async (_: unknown, previous: Uint8Array | null) =>
      trained++ % 2 === 1 ? previous : basisOf(trained);
    let opened = await openWith(train, { state, limits });
    await opened.database.createCollection({ id: 'c', ...SPACE });
    let rowCount = 0;
    let provisionalCount = 0;
    while (rowCount < 4_000) {
      const count = 1 + randomInt(random, [2, 40, 400][randomInt(random, 3)]!);
      const writing = write(opened.database, rowCount, count);
      // Searches see the rows of the write or not, but never a part of their codes.
      if (random() < 0.5) await bestIds(opened.database);
      await writing;
      rowCount += count;
      if (random() < 0.5) await settle();
      const ids = [1, 2, 3].map((i) => `v${rowCount - i}`).slice(0, rowCount);
      assert.deepEqual(await bestIds(opened.database), ids, `seed ${seed}`);
      const { lastCodes, lastBlocks } = opened.watching;
      if (lastBlocks.at(-1)!.hasProvisionalHead && lastCodes.at(-1)!.head !== null)
        provisionalCount++;
      if (random() < 0.1) {
        await opened.database.close();
        opened = await openWith(train, { state, limits });
      }
    }
    assert.ok(
      provisionalCount > 10,
      `${provisionalCount} searches of heads that grow, seed ${seed}`,
    );
    await settle();
    const heads = await headsOf(opened.database, opened.watching);
    assert.ok(!heads.includes(false), 'all segments have heads in the end');
    const files = opened.watching.lastBlocks.filter((block) => !block.hasProvisionalHead);
    assert.ok(files.length >= 7, `${files.length} segments`);
    await opened.database.close();
  });

  it('are not made of rows that arrive if the last segment was left without', async () => {
    let trained = 0;
    const { database, watching } = await openWith(async () =>
      trained++ === 0 ? basisOf(1) : null,
    );
    await database.createCollection({ id: 'c', ...SPACE });
    for (const from of [0, SEGMENT_ROWS]) {
      await write(database, from, SEGMENT_ROWS);
      await settle();
    }
    await write(database, 2 * SEGMENT_ROWS, 1);
    assert.deepEqual(await headsOf(database, watching), [true, false, false]);
    await database.close();
  });

  it('count towards the memory of a collection, equal bases once', async () => {
    const hostBytesWith = async (basisOfSegment: (number: number) => Uint8Array | null) => {
      let number = 0;
      const { database } = await openWith(async () => basisOfSegment(number++));
      await database.createCollection({ id: 'c', ...SPACE });
      await write(database, 0, SEGMENT_ROWS * 3);
      await settle();
      const { hostBytes } = database.collection('c').record().memory;
      await database.close();
      return hostBytes;
    };
    const without = await hostBytesWith(() => null);
    const headBytes = 3 * SEGMENT_ROWS * 4;
    const shared = basisOf(3);
    assert.equal((await hostBytesWith(() => shared)) - without, headBytes + shared.length);
    assert.equal((await hostBytesWith(basisOf)) - without, headBytes + 3 * shared.length);
  });

  it('are made again by a compaction, for the rows that are left', async () => {
    const clock = createTestClock();
    const rowCounts: number[] = [];
    const { database, watching } = await openWith(
      async ({ rowCount }) => {
        rowCounts.push(rowCount);
        return basisOf(rowCounts.length);
      },
      { clock },
    );
    await database.createCollection({ id: 'c', ...SPACE });
    await write(database, 0, SEGMENT_ROWS * 3);
    await settle();
    const gone = rowsFrom(20, 160).map(({ id }) => id);
    await database.collection('c').delete({ kind: 'ids', ids: gone }, { dryRun: false });
    clock.nowMs += 60_000;
    await write(database, 1000, SEGMENT_ROWS);
    await settle();
    assert.deepEqual(rowCounts, [SEGMENT_ROWS, SEGMENT_ROWS, SEGMENT_ROWS, SEGMENT_ROWS]);
    clock.nowMs += 16 * 60_000;
    await write(database, 2000, SEGMENT_ROWS);
    await settle();
    assert.deepEqual(rowCounts.slice(4), [SEGMENT_ROWS, 32]);
    assert.deepEqual(await headsOf(database, watching), [true, true, true]);
    assert.deepEqual(
      watching.lastCodes.map(({ basis }) => basis),
      [6, 4, 5].map(basisOf),
    );
    assert.deepEqual(await bestIds(database), ['v2063', 'v2062', 'v2061']);
    await database.close();
  });

  it('do not delay writes and searches while they are made', async () => {
    const { promise, resolve } = withResolvers<Uint8Array>();
    const { database, watching } = await openWith(() => promise);
    await database.createCollection({ id: 'c', ...SPACE });
    await write(database, 0, SEGMENT_ROWS + 1);
    await settle();
    assert.deepEqual(await headsOf(database, watching), [false, false]);
    const codesBefore = watching.lastCodes[0]!;
    await write(database, SEGMENT_ROWS + 1, 1);
    assert.deepEqual(await bestIds(database), ['v65', 'v64', 'v63']);
    resolve(basisOf(5));
    await settle();
    assert.deepEqual(await headsOf(database, watching), [true, true]);
    assert.equal(codesBefore.head, null, 'the codes of earlier readers do not change');
    const [codes] = watching.lastCodes;
    for (const name of ['tiles', 'coarse', 'refinement'] as const) {
      assert.deepEqual(codes![name], codesBefore[name]);
    }
    await database.close();
  });

  it('are missing after a crash while they are made, and the rows are not', async () => {
    const state = createMemoryState();
    const crashing = createCrashingStore(state);
    const first = await openWith(() => new Promise(() => {}), { store: crashing.store });
    await first.database.createCollection({ id: 'c', ...SPACE });
    await write(first.database, 0, SEGMENT_ROWS * 2 + 1);
    await settle();
    crashing.die();
    assert.equal(state.blobs.size, 0);

    const second = await openWith(async () => basisOf(4), { state });
    await settle();
    assert.deepEqual(await bestIds(second.database), ['v128', 'v127', 'v126']);
    assert.deepEqual(await headsOf(second.database, second.watching), [true, true, true]);
    assert.equal(state.blobs.size, 2);
    await second.database.close();
  });

  it('are tried again after a failure, but not if they were found not to pay', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const clock = createTestClock();
    const state = createMemoryState();
    let isFull = true;
    const store = createMemoryStore({
      state,
      async beforeCommit(operations) {
        if (isFull && operations.some(({ kind }) => kind === 'trim')) throw new Error('full');
      },
    });
    let attempt = 0;
    const train = async () => {
      if (attempt++ === 0) throw new Error('the thread died');
      return null;
    };
    const { database, encoder, watching } = await openWith(train, { store, clock });
    const retry = async () => {
      clock.nowMs += 10_000;
      t.mock.timers.tick(10_000);
      await settle();
    };
    await database.createCollection({ id: 'c', ...SPACE });
    await write(database, 0, SEGMENT_ROWS + 1);
    await settle();
    assert.equal(encoder.trainedCount, 1);
    await retry();
    assert.equal(encoder.trainedCount, 2, 'after the failure of a thread');
    await retry();
    assert.equal(encoder.trainedCount, 2, 'after the failure of the disk');
    isFull = false;
    await retry();
    assert.equal(state.blobs.size, 1);
    assert.equal(encoder.trainedCount, 2);
    assert.deepEqual(await headsOf(database, watching), [false, false]);
    await database.close();
  });

  it('are tried less and less often while they do not pay', async () => {
    let doesPay = false;
    const { database, watching, encoder } = await openWith(async () =>
      doesPay ? basisOf(1) : null,
    );
    await database.createCollection({ id: 'c', ...SPACE });
    const trained: number[] = [];
    const grow = async (toSegment: number) => {
      for (let segment = watching.lastCodes.length; segment < toSegment; segment++) {
        const before = encoder.trainedCount;
        await write(database, segment * SEGMENT_ROWS, SEGMENT_ROWS);
        await settle();
        if (encoder.trainedCount > before) trained.push(segment);
        await bestIds(database);
      }
    };
    await grow(15);
    assert.deepEqual(trained, [0, 1, 2, 4, 8]);
    doesPay = true;
    await grow(20);
    assert.deepEqual(trained.slice(5), [16, 17, 18, 19]);
    assert.equal(watching.lastCodes.filter(({ head }) => head !== null).length, 4);
    await database.close();
  });

  it('belong to one vector each, which may be dropped while they are made', async () => {
    const { promise, resolve } = withResolvers();
    const dimensions: number[] = [];
    const { database, watching } = await openWith(async ({ dimension }) => {
      dimensions.push(dimension);
      await promise;
      return basisOf(6);
    });
    const other = dense(DIMENSION + 1);
    const vectors = { '': SHAPE, other: { ...other, metric: 'dot' } } as const;
    await database.createCollection({ id: 'c', ...SPACE, vectors });
    const rows = rowsFrom(0, SEGMENT_ROWS + 1);
    const values = rows.map((row) => [...row.values, 1]);
    await database.collection('c').write(batchOf(rows, [columnOf('other', other, values)]), WRITE);
    await settle();
    await database.collection('c').update({ vectors: { other: null } });
    resolve();
    await settle();
    assert.deepEqual(dimensions, [DIMENSION], 'the dropped vector gets none');
    assert.deepEqual(await headsOf(database, watching), [true, true]);
    assert.deepEqual(await bestIds(database), ['v64', 'v63', 'v62']);
    await database.close();
  });
});
