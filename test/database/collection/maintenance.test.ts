// Checkpoints, compaction and recovery: the files on disk after them, and the effect of damage.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Manifest } from '../../../src/database/layout/manifest.js';
import {
  createMemoryState,
  createMemoryStore,
  type MemoryState,
} from '../../../src/storage/memory-store.js';
import { eventually, withResolvers } from '../../support/waiting.js';
import { columnOf, dense } from '../../vector-columns.js';
import {
  batchOf,
  createTestClock,
  openDatabase,
  overrideStore,
  type TestVector,
} from '../harness.js';

const WRITE = { mode: 'upsert' } as const;
const shapeOf = (dimension: number) => ({ ...dense(dimension), metric: 'dot' }) as const;

const SPACE = {
  vectors: { '': { kind: 'dense', dimension: 4, metric: 'dot' } },
  description: null,
  labels: {},
} as const;

const vector = (i: number, version = 0): TestVector => ({
  id: `v${i}`,
  values: [i, version, 1, 0],
  metadata: `{"i": ${i}, "big": 12345678901234567890}`,
});
const range = (from: number, to: number, version = 0) =>
  Array.from({ length: to - from }, (_, i) => vector(from + i, version));

function manifestOf(state: MemoryState): Manifest {
  const entry = [...createMemoryStore({ state }).list([])].find(({ key }) => key[0] === 'manifest');
  return JSON.parse(Buffer.from(entry!.value).toString()) as Manifest;
}

const logLength = (state: MemoryState) =>
  [...state.entries.logs.values()].reduce((sum, { records }) => sum + records.count, 0);

describe('maintenance', () => {
  it('lets writes wait while many full segments have no files yet', async () => {
    const state = createMemoryState();
    const memory = createMemoryStore({ state });
    const { promise: disk, resolve: finish } = withResolvers();
    const store = overrideStore(memory, {
      async writeBlob(name, parts) {
        await disk;
        await memory.writeBlob(name, parts);
      },
    });
    const database = await openDatabase({ store });
    await database.createCollection({ id: 'c', ...SPACE });
    let writtenCount = 0;
    const writing = (async () => {
      for (; writtenCount < 12; writtenCount++) {
        const batch = batchOf(range(writtenCount * 64, (writtenCount + 1) * 64));
        await database.collection('c').write(batch, WRITE);
      }
    })();
    // Six full segments may wait, in addition to the one whose file is being written.
    await eventually('the first writes are done', () => writtenCount === 7);
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(writtenCount, 7);
    finish();
    await writing;
    assert.equal(database.collection('c').record().vectorCount, 12 * 64);
    await database.close();
  });

  it('trims the log after many short records, which take long to replay', async () => {
    const state = createMemoryState();
    const memory = createMemoryStore({ state });
    const store = overrideStore(memory, {
      logRecordCount: (log) => 1000 * memory.logRecordCount(log),
    });
    const database = await openDatabase({ store });
    await database.createCollection({ id: 'c', ...SPACE });
    for (let i = 0; i < 50; i++) {
      await database.collection('c').write(batchOf(range(i, i + 1)), WRITE);
      await eventually('the log is short', () => logLength(state) <= 32);
    }
    assert.notEqual(manifestOf(state).segments.length, 0);
    await database.close();
    const again = await openDatabase({ state });
    assert.equal(await again.collection('c').count(), 50);
    await again.close();
  });

  it('writes full segments to files and trims them from the log', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    await database.createCollection({ id: 'c', ...SPACE });
    for (let i = 0; i < 200; i += 20) {
      await database.collection('c').write(batchOf(range(i, i + 20)), { mode: 'upsert' });
    }
    await database.close();
    // 200 rows in segments of 64 fill three segments; the rows of the fourth are in the log.
    const manifest = manifestOf(state);
    assert.deepEqual(
      manifest.segments.map(({ rowCount }) => rowCount),
      [64, 64, 64],
    );
    // Row 192 belongs to the tenth write, twelve rows of which are in the third file.
    assert.equal(manifest.checkpointSequence, 9);
    assert.equal(manifest.partialRowCount, 12);
    assert.equal(logLength(state), 1);
    assert.equal(state.blobs.size, 3);

    const again = await openDatabase({ state });
    assert.equal(again.collection('c').record().vectorCount, 200);
    const { vectors } = await again.collection('c').fetch(['v0', 'v195', 'v199'], {
      values: true,
      metadata: true,
    });
    assert.deepEqual(
      vectors.map(({ values, metadata }) => [values![0], metadata]),
      [0, 195, 199].map((i) => [i, vector(i).metadata]),
    );
    await again.close();
  });

  it('removes rows that ended before the retention in compactions, and keeps the order', async () => {
    const state = createMemoryState();
    const clock = createTestClock();
    const database = await openDatabase({ state, clock });
    await database.createCollection({ id: 'c', ...SPACE });
    await database.collection('c').write(batchOf(range(0, 192)), { mode: 'upsert' });
    const page = await database.collection('c').list({ limit: 10 });
    await database
      .collection('c')
      .delete({ kind: 'filter', filter: { i: { $gte: 20, $lt: 180 } } }, { dryRun: false });
    clock.nowMs += 60_000;
    await database.collection('c').write(batchOf(range(1000, 1064)), { mode: 'upsert' });
    await settle();
    assert.equal(
      manifestOf(state).segments.reduce((sum, { rowCount }) => sum + rowCount, 0),
      256,
      'within the retention nothing goes',
    );
    const next = await database.collection('c').list({ cursor: page.nextCursor, limit: 500 });
    assert.equal(next.vectors.length, 182, 'the snapshot shows what was deleted since');

    clock.nowMs += 16 * 60_000;
    await database.collection('c').write(batchOf(range(2000, 2064)), { mode: 'upsert' });
    await settle();
    const manifest = manifestOf(state);
    assert.ok(
      manifest.segments.reduce((sum, { rowCount }) => sum + rowCount, 0) <= 160,
      JSON.stringify(manifest),
    );
    assert.equal(state.blobs.size, manifest.segments.length, 'old files are gone');
    assert.ok(manifest.horizonSequence >= 2);
    const expected = [
      ...range(0, 20),
      ...range(180, 192),
      ...range(1000, 1064),
      ...range(2000, 2064),
    ].map(({ id }) => id);
    const listed = async (db: typeof database) =>
      (await db.collection('c').list({ limit: 1000 })).vectors.map(({ id }) => id);
    assert.deepEqual(await listed(database), expected);
    const { values } = await database
      .collection('c')
      .get('v185', { values: true, metadata: false });
    assert.equal(values![0], 185);
    await database.close();
    const again = await openDatabase({ state, clock });
    assert.deepEqual(await listed(again), expected);
    assert.equal(await again.collection('c').count({ i: { $gte: 1000 } }), 128);
    await again.close();
  });

  it('names a damaged file in an error, and other collections are not affected', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    for (const id of ['good', 'bad']) {
      await database.createCollection({ id, ...SPACE });
      await database.collection(id).write(batchOf(range(0, 70)), { mode: 'upsert' });
    }
    await settle();
    await database.close();
    const names = [...state.blobs.keys()];
    const damages: Record<string, (bytes: Uint8Array) => Uint8Array | undefined> = {
      'a flipped bit': (bytes) => {
        const changed = bytes.slice();
        changed[changed.length >> 1]! ^= 4;
        return changed;
      },
      'a torn end': (bytes) => bytes.slice(0, -100),
      'a missing file': () => undefined,
    };
    for (const [what, damage] of Object.entries(damages)) {
      const broken: MemoryState = { ...state, blobs: new Map(state.blobs) };
      const name = names.at(-1)!;
      const damaged = damage(state.blobs.get(name)!);
      if (damaged === undefined) broken.blobs.delete(name);
      else broken.blobs.set(name, damaged);
      const again = await openDatabase({ state: broken });
      // Checksums are verified in the background.
      await eventually(
        'the damage is found',
        () => again.collection('bad').record().status !== 'ready',
      );
      assert.equal(again.collection('bad').record().status, 'failed', what);
      await assert.rejects(again.collection('bad').query({ vector: new Float32Array(4) }), {
        code: 'collection_unavailable',
        message: new RegExp(name),
      });
      assert.equal(again.collection('good').record().vectorCount, 70);
      assert.equal(again.loadingCount, 0);
      await again.close();
    }
  });

  it('deletes files that no manifest names', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    await database.createCollection({ id: 'c', ...SPACE });
    await database.collection('c').write(batchOf(range(0, 64)), { mode: 'upsert' });
    await settle();
    await database.close();
    const [name] = [...state.blobs.keys()];
    state.blobs.set(name!.replace('/1.', '/99.'), new Uint8Array(10));
    state.blobs.set('gone/1.arrow', new Uint8Array(10));
    await (await openDatabase({ state })).close();
    assert.deepEqual([...state.blobs.keys()], [name]);
  });

  it('removes all data of a deleted collection, whose id is free at once', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    await database.createCollection({ id: 'c', ...SPACE });
    await database.collection('c').write(batchOf(range(0, 100)), { mode: 'upsert' });
    await database.collection('c').delete({ kind: 'ids', ids: ['v1'] }, { dryRun: false });
    await settle();
    const { vectorCount } = await database.collection('c').drop();
    assert.equal(vectorCount, 99);
    assert.throws(() => database.collection('c').record(), { code: 'collection_not_found' });
    assert.deepEqual(
      [...createMemoryStore({ state }).list([])].map(({ key }) => key[0]),
      ['secret'],
    );
    assert.equal(logLength(state), 0);
    assert.equal(state.blobs.size, 0);
    await database.createCollection({ ...SPACE, id: 'c', vectors: { '': shapeOf(7) } });
    assert.equal(database.collection('c').record().vectorCount, 0);
    await database.close();
  });
});

describe('vectors that were dropped', () => {
  const titled = (rows: readonly TestVector[], dimension: number) =>
    batchOf(rows, [
      columnOf(
        'title',
        dense(dimension),
        rows.map(() => new Array<number>(dimension).fill(1)),
      ),
    ]);
  const fileBytesOf = (state: MemoryState) =>
    manifestOf(state).segments.reduce((sum, { byteLength }) => sum + byteLength, 0);

  it('leave memory at once and files by compaction, without a write', async () => {
    const state = createMemoryState();
    const database = await openDatabase({ state });
    await database.createCollection({
      ...SPACE,
      id: 'c',
      vectors: { ...SPACE.vectors, title: shapeOf(64) },
    });
    const collection = database.collection('c');
    for (let i = 0; i < 3; i++) {
      await collection.write(titled(range(i * 64, (i + 1) * 64), 64), WRITE);
    }
    await eventually('the segments have files', () => manifestOf(state).segments.length === 3);
    const before = { files: fileBytesOf(state), memory: collection.record().memory.hostBytes };
    await collection.update({ vectors: { title: null } });
    const valueBytes = 192 * 64 * 4;
    assert.ok(collection.record().memory.hostBytes < before.memory - valueBytes);
    await eventually(
      'the files are rewritten',
      () => fileBytesOf(state) < before.files - valueBytes,
    );
    const [match] = (await collection.query({ vector: Float32Array.of(1, 0, 0, 0) })).matches;
    assert.equal(match!.id, 'v191');
    await database.close();
    const again = await openDatabase({ state });
    assert.equal(again.collection('c').record().vectorCount, 192);
    await again.close();
  });

  it('do not come back from the log or from files when their name is used again', async () => {
    const state = createMemoryState();
    const first = await openDatabase({ state });
    await first.createCollection({
      ...SPACE,
      id: 'c',
      vectors: { ...SPACE.vectors, title: shapeOf(2) },
    });
    await first.collection('c').write(titled(range(0, 100), 2), WRITE);
    await first.collection('c').update({ vectors: { title: null } });
    await first.collection('c').update({ vectors: { title: shapeOf(3) } });
    // These rows were written for the dropped vector.
    const late = first.collection('c').write(titled(range(0, 1), 2), WRITE);
    await assert.rejects(late, { code: 'invalid_request', message: /"title" .* was dropped/ });
    await first.collection('c').write(titled(range(3, 5), 3), WRITE);
    const found = async (database: typeof first) => {
      const request = { vector: Float32Array.of(1, 1, 1), using: 'title', topK: 200 };
      const { matches } = await database.collection('c').query(request);
      return matches.map(({ id }) => id);
    };
    assert.deepEqual(await found(first), ['v3', 'v4']);
    await first.close();
    const second = await openDatabase({ state });
    assert.deepEqual(await found(second), ['v3', 'v4']);
    await second.close();
  });

  it('end the pages of their rankings, also when their name is used again', async () => {
    const database = await openDatabase({});
    await database.createCollection({ id: 'c', ...SPACE });
    const collection = database.collection('c');
    const search = { vector: Float32Array.of(1, 1), using: 'title', limit: 10 };
    const fused = {
      fusion: {
        kind: 'rrf',
        rankConstant: 60,
        normalize: 'max',
        parts: [{ ...search, limit: 50, weight: 1 }],
      },
      limit: 10,
    } as const;
    for (const request of [search, fused]) {
      await collection.update({ vectors: { title: shapeOf(2) } });
      await collection.write(titled(range(0, 30), 2), WRITE);
      const first = await collection.query(request);
      const next = { cursor: first.nextCursor! };
      assert.equal((await collection.query(next)).matches.length, 10);
      await collection.update({ vectors: { title: null } });
      await assert.rejects(collection.query(next), { code: 'cursor_expired', message: /"title"/ });
      await collection.update({ vectors: { title: shapeOf(2) } });
      await assert.rejects(collection.query(next), { code: 'cursor_expired', message: /"title"/ });
      await collection.update({ vectors: { title: null } });
    }
    await database.close();
  });

  it('end the reads that use them, and no others', async () => {
    const database = await openDatabase({});
    await database.createCollection({
      ...SPACE,
      id: 'c',
      vectors: { ...SPACE.vectors, title: shapeOf(2) },
    });
    await database.collection('c').write(titled(range(0, 100), 2), WRITE);
    const scan = (includeValues: boolean) =>
      database.collection('c').scan({ includeValues, includeMetadata: false });
    const [withValues, without] = [await scan(true), await scan(false)];
    await database.collection('c').update({ vectors: { title: null } });
    assert.throws(() => [...withValues.chunks()], { code: 'vector_not_found' });
    const counts = [...without.chunks()].map(({ count }) => count);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      100,
    );
    await database.close();
  });
});

/** Lets background maintenance finish, which runs on this thread between turns of the event loop. */
async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
}
