// Rows are encoded when they arrive: every block that an engine searches has the codes of exactly
// its rows, after growth, sealing, compaction and a restart.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMemoryState } from '../../src/storage/memory-store.js';
import { createCheckedEncoder, createWatchingEngine, DIMENSION } from './checked-codes.js';
import { batchOf, createTestClock, openDatabase, type TestVector } from './harness.js';

function vectors(from: number, to: number): TestVector[] {
  return Array.from({ length: to - from }, (_, i) => ({
    id: `v${from + i}`,
    values: [from + i + 1, 1, i % 7],
    metadata: '{}',
  }));
}

/** Lets background work on the calling thread finish. */
async function settle(): Promise<void> {
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
}

describe('the codes of rows', () => {
  it('match the rows after growth, compaction and a restart', async () => {
    const state = createMemoryState();
    const clock = createTestClock();
    const encoder = createCheckedEncoder('three values');
    const watching = createWatchingEngine(encoder);
    const open = ({ engine } = watching) => openDatabase({ state, clock, engine });
    let database = await open();
    const search = async () => {
      const request = { vector: Float32Array.of(1, 0, 0), topK: 5, explain: true } as const;
      const { matches, explain } = await database.collection('c').query(request);
      assert.equal(matches.length, 5);
      return explain!.segmentCount;
    };
    await database.createCollection({
      id: 'c',
      vectors: { '': { kind: 'dense', dimension: DIMENSION, metric: 'dot' } },
      description: null,
      labels: {},
    });
    for (let i = 0; i < 300; i += 7) {
      await database.collection('c').write(batchOf(vectors(i, i + 7)), { mode: 'upsert' });
      if (i % 5 === 0) await search();
    }
    const before = await search();
    assert.ok(before > 4, `${before} segments`);

    // Most rows end; after the retention the remaining rows are compacted into one segment.
    await database.collection('c').write(batchOf(vectors(0, 250)), { mode: 'upsert' });
    clock.nowMs += 60_000;
    await database.collection('c').write(batchOf(vectors(1000, 1064)), { mode: 'upsert' });
    await settle();
    clock.nowMs += 16 * 60_000;
    await database.collection('c').write(batchOf(vectors(2000, 2064)), { mode: 'upsert' });
    await settle();
    const files = [...state.blobs.keys()];
    assert.ok(!files.some((name) => name.endsWith('/1.arrow')), `${files}: nothing was compacted`);
    await search();

    await database.close();
    encoder.encodedSegmentCount = 0;
    database = await open();
    await search();
    assert.equal(encoder.encodedSegmentCount, 0, 'codes are read from the files');
    await database.close();
    assert.ok(watching.blockCount > 20);

    // The codes of another version of the encoder are not used.
    const other = createCheckedEncoder('three values, another way');
    database = await open(createWatchingEngine(other));
    await search();
    assert.ok(other.encodedSegmentCount > 0);
    await database.close();
  });
});
