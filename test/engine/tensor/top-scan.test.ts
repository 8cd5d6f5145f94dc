// The tensor program on fake devices that return the best columns of a product: one rounds to float32,
// the other truncates operands to TF32.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBitmap, setBit } from '../../../src/common/bitmap.js';
import { METRICS, type VectorBlock } from '../../../src/common/types.js';
import type { SearchQuery } from '../../../src/engine/core/engine.js';
import { packQueries } from '../../../src/engine/core/packed-queries.js';
import type { TensorProgram } from '../../../src/engine/tensor/tensor-program.js';
import {
  assertTrueHits,
  bruteForce,
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBitmap,
  createRandomBlock,
  createValues,
  createVector,
  idOf,
  rowOf,
  SEED,
  toBlockQuery,
  toSearchHits,
  trueScore,
} from '../blocks.js';
import { CHUNK_BYTES, CHUNK_ROWS, createDevice, createProgram, DIMENSION } from './top-device.js';

function check(program: TensorProgram, block: VectorBlock, queries: readonly SearchQuery[]) {
  const hits = program.search(block, packQueries(block, queries.map(toBlockQuery)));
  assert.ok(hits !== null, 'the device has room');
  for (const [index, query] of queries.entries()) {
    assertTrueHits(toSearchHits(hits[index]!), bruteForce(query), `seed ${SEED}`);
  }
  return hits;
}

/** The other metrics have no keys, so a device does not scan for them. */
const SCANNED = METRICS.filter((metric) => metric !== 'jaccard');

describe('the scan of a device that returns the best rows', () => {
  it('gives the exact answer over rows of all kinds in many chunks', () => {
    const random = createRandom(SEED);
    for (const kind of ['scaled', 'scattered', 'clustered', 'denormal', 'outlier'] as const) {
      const device = createDevice();
      const block = createRandomBlock(random, kind, 5 * CHUNK_ROWS + 77, DIMENSION);
      const queries = Array.from({ length: 12 }, (_, index) =>
        createQuery(block, createVector(random, block, kind), {
          metric: METRICS[index % METRICS.length]!,
          k: [1, 10, 90, 300][index % 4]!,
          rows: index % 2 === 0 ? null : createRandomBitmap(random, block.rowCount, 0.6),
        }),
      );
      check(createProgram(device), block, queries);
    }
  });

  it('reads once per batch and requests little more than k rows if scores differ enough', () => {
    const random = createRandom(SEED);
    const device = createDevice();
    const block = createRandomBlock(random, 'random', 4 * CHUNK_ROWS + 100, DIMENSION);
    const queries = SCANNED.map((metric) =>
      createQuery(block, createVector(random, block, 'random'), { metric, k: 5 }),
    );
    const hits = check(createProgram(device), block, queries);
    assert.equal(device.readCount, 1);
    // Five chunks, and a product for each metric.
    assert.deepEqual(
      device.counts,
      Array.from({ length: 5 * SCANNED.length }, () => 21),
    );
    for (const { rescoredCount } of hits) assert.ok(rescoredCount < 20, `${rescoredCount}`);
  });

  it('requests more rows until unseen rows are certainly worse', () => {
    const random = createRandom(SEED);
    for (const metric of SCANNED) {
      const device = createDevice(true);
      // The rows are so close together that TF32 cannot distinguish them, and the best come last.
      const base = createValues(random, 'random', 1, DIMENSION);
      const values = new Float32Array(CHUNK_ROWS * DIMENSION);
      for (let row = 0; row < CHUNK_ROWS; row++) {
        for (let i = 0; i < DIMENSION; i++) {
          const nudge = i === 0 ? row * 2 ** -20 : 0;
          values[row * DIMENSION + i] = base[i]! * (1 + nudge);
        }
      }
      const block = createBlock(values, DIMENSION, createIds(random, CHUNK_ROWS));
      const query = createQuery(block, rowOf(block, CHUNK_ROWS - 1), { metric, k: 3 });
      check(createProgram(device), block, [query]);
      assert.deepEqual(device.counts, [19, CHUNK_ROWS], metric);
      assert.equal(device.readCount, 2);
    }
  });

  it('masks rows on the device that no query of a batch searches', () => {
    const random = createRandom(SEED);
    const device = createDevice();
    const block = createRandomBlock(random, 'random', CHUNK_ROWS, DIMENSION);
    const vector = createVector(random, block, 'random');
    // The best rows do not pass the filter: without a mask they would be returned.
    const best = bruteForce(createQuery(block, vector, { metric: 'dot', k: 100 }));
    const rows = createBitmap(CHUNK_ROWS);
    for (let row = 0; row < CHUNK_ROWS; row++) if (!best.rows.includes(row)) setBit(rows, row);
    const query = createQuery(block, vector, { metric: 'dot', rows, k: 5 });
    check(createProgram(device), block, [query, query]);
    assert.deepEqual(device.counts, [21]);
  });

  it('returns later pages without requesting the earlier ones', () => {
    const random = createRandom(SEED);
    for (const metric of SCANNED) {
      const device = createDevice();
      const block = createRandomBlock(random, 'random', CHUNK_ROWS, DIMENSION);
      const vector = createVector(random, block, 'random');
      const program = createProgram(device);
      const all = bruteForce(createQuery(block, vector, { metric, k: CHUNK_ROWS }));
      for (const place of [9, 99, 199]) {
        const row = all.rows[place]!;
        const after = { score: trueScore(metric, vector, rowOf(block, row)), id: idOf(block, row) };
        check(program, block, [createQuery(block, vector, { metric, k: 10, after })]);
      }
      assert.deepEqual(device.counts, [26, 26, 26], metric);
    }
  });

  it('scores outliers, which would widen the error bounds of all keys, separately', () => {
    const random = createRandom(SEED);
    const device = createDevice();
    const values = createValues(random, 'random', CHUNK_ROWS, DIMENSION);
    for (let i = 0; i < DIMENSION; i++) {
      values[3 * DIMENSION + i]! *= 1e5;
      values[5 * DIMENSION + i]! *= 1e-30;
      values[7 * DIMENSION + i]! *= 1e30;
    }
    const block = createBlock(values, DIMENSION, createIds(random, CHUNK_ROWS));
    const queries = [1, 3, 5, 7].flatMap((row) =>
      METRICS.map((metric) => createQuery(block, rowOf(block, row), { metric, k: 5 })),
    );
    check(createProgram(device), block, queries);
    assert.ok(device.multiplyCount >= 3);
    assert.ok(
      device.counts.every((count) => count === 21),
      `${device.counts}`,
    );
  });

  it('keeps the incomplete chunk of a block, and reloads it when it has grown by a quarter', () => {
    const random = createRandom(SEED);
    const device = createDevice();
    const program = createProgram(device);
    const values = createValues(random, 'random', 400, DIMENSION);
    const ids = createIds(random, 400);
    const loads = [60, 100, 110, 125, 126, 126, 256, 400, 126].map((rowCount) => {
      const view = createBlock(
        values.slice(0, rowCount * DIMENSION),
        DIMENSION,
        ids.slice(0, rowCount),
        'growing',
      );
      const before = device.loadCount;
      check(program, view, [createQuery(view, rowOf(view, 7), { metric: 'dot' })]);
      return device.loadCount - before;
    });
    // A query is one load, a chunk three, and the mask of rows that an older version does not have is one.
    assert.deepEqual(loads, [0, 4, 1, 1, 4, 1, 4, 4, 2]);
    assert.equal(device.matrixCount(), 6);
  });

  it('reports missing room, then keeps fewer rows, and frees all matrices', () => {
    const random = createRandom(SEED);
    const block = createRandomBlock(random, 'random', 4 * CHUNK_ROWS, DIMENSION);
    const queries = SCANNED.map((metric) => createQuery(block, rowOf(block, 9), { metric, k: 5 }));
    const packed = packQueries(block, queries.map(toBlockQuery));
    let answered = 0;
    for (let valuesMax = 0; valuesMax < 24_000; valuesMax += 500) {
      const device = createDevice();
      device.valuesMax = valuesMax;
      const program = createProgram(device);
      for (let turn = 0; turn < 3; turn++) {
        const hits = program.search(block, packed);
        assert.equal(device.waiting.size, 0);
        if (hits === null) continue;
        answered++;
        for (const [index, query] of queries.entries()) {
          assertTrueHits(toSearchHits(hits[index]!), bruteForce(query), `seed ${SEED}`);
        }
      }
      program.unloadAll();
      assert.equal(device.matrixCount(), 0);
    }
    assert.ok(answered > 0 && answered < 100, `${answered} of 144 searches were answered`);
  });

  it('does not answer for a block beyond its budget, and stays within the budget', () => {
    const random = createRandom(SEED);
    const device = createDevice();
    const factBytes = 3 * CHUNK_ROWS * 3 * 8;
    const program = createProgram(device, 2.5 * CHUNK_BYTES + factBytes);
    const block = createRandomBlock(random, 'random', 3 * CHUNK_ROWS, DIMENSION);
    const queries = [createQuery(block, rowOf(block, 1))];
    assert.equal(program.search(block, packQueries(block, queries.map(toBlockQuery))), null);
    assert.deepEqual(program.takeChanges(), [
      { key: block.key, hostBytes: factBytes, deviceBytes: 2 * CHUNK_BYTES },
    ]);
  });
});
