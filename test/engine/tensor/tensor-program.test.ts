import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBitmap, setBit } from '../../../src/common/bitmap.js';
import { METRICS, type VectorBlock } from '../../../src/common/types.js';
import { packQueries } from '../../../src/engine/core/packed-queries.js';
import type { MatrixDevice } from '../../../src/engine/tensor/matrix-device.js';
import { TensorProgram } from '../../../src/engine/tensor/tensor-program.js';
import { createWasmDevice } from '../../../src/engine/tensor/wasm-device.js';
import {
  assertTrueHits,
  bruteForce,
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBlock,
  createValues,
  createVector,
  type Random,
  type RowKind,
  rowOf,
  SEED,
  toBlockQuery,
  toSearchHits,
} from '../blocks.js';
import { FloatDevice } from './float-device.js';

const KINDS: readonly RowKind[] = [
  'scaled',
  'scattered',
  'clustered',
  'huge',
  'denormal',
  'random',
];

/** With this dimension a chunk has 64 rows. */
const WIDE = 16_384;

function search(program: TensorProgram, block: VectorBlock, random: Random, queryCount = 3) {
  const queries = Array.from({ length: queryCount }, (_, index) =>
    createQuery(block, createVector(random, block, 'random'), {
      metric: METRICS[index % 3]!,
      k: 1 + index,
    }),
  );
  const hits = program.search(block, packQueries(block, queries.map(toBlockQuery)))!;
  for (const [index, query] of queries.entries()) {
    assertTrueHits(toSearchHits(hits[index]!), bruteForce(query), `${block.key}, seed ${SEED}`);
  }
  return hits;
}

/** Keeps the usage that the program reports. */
class Ledger {
  private readonly bytes = new Map<string, number>();

  update(program: TensorProgram): void {
    for (const { key, hostBytes, deviceBytes } of program.takeChanges()) {
      assert.equal(deviceBytes, 0);
      this.bytes.set(key, hostBytes);
    }
  }

  of(key: string): number {
    return this.bytes.get(key) ?? 0;
  }

  get total(): number {
    return [...this.bytes.values()].reduce((sum, bytes) => sum + bytes, 0);
  }
}

function createWideBlock(random: Random, rowCount: number): VectorBlock {
  return createRandomBlock(random, 'random', rowCount, WIDE);
}

describe('the tensor program', () => {
  it('gives the exact answer in whatever order the device sums', () => {
    console.log(`SAGITTA_TEST_SEED=${SEED}`);
    const random = createRandom(SEED);
    for (const [index, kind] of KINDS.entries()) {
      // More than one chunk, alternately of many short and few long rows.
      const [dimension, rowCount] = index % 2 === 0 ? [5, 17_000] : [600, 1_800];
      const device = new FloatDevice(random);
      const program = new TensorProgram(device, { residentBytesMax: 2 ** 30 });
      const block = createRandomBlock(random, kind, rowCount, dimension);
      search(program, block, random, 1);
      search(program, block, random, 3);
      assert.ok(device.multiplyCount >= 2, 'the device was used by each search');
    }
  });

  it('rescores few rows if scores differ enough', () => {
    const random = createRandom(SEED);
    const program = new TensorProgram(new FloatDevice(random), { residentBytesMax: 2 ** 30 });
    // Exactly two chunks, so that all rows are scanned.
    const block = createRandomBlock(random, 'random', 2 * 4_096, 256);
    for (const { rows, rescoredCount } of search(program, block, random, 3)) {
      assert.ok(rescoredCount <= rows.length + 5, `${rescoredCount} rescored, seed ${SEED}`);
    }
  });

  it('gives the exact answer if the device has no room', () => {
    const random = createRandom(SEED);
    const block = createWideBlock(random, 100);
    for (const valuesMax of [0, WIDE, 3 * WIDE, 60 * WIDE, 66 * WIDE, 68 * WIDE, 70 * WIDE]) {
      const device = new FloatDevice(random);
      device.valuesMax = valuesMax;
      const program = new TensorProgram(device, { residentBytesMax: 2 ** 30 });
      search(program, block, random, 1);
      search(program, block, random, 3);
      program.unloadAll();
      assert.equal(device.matrixCount(), 0);
    }
  });

  it('stays within its budget and reports its usage', () => {
    const random = createRandom(SEED);
    const device = new FloatDevice(random);
    const chunkBytes = 64 * WIDE * 4;
    const residentBytesMax = 2.5 * chunkBytes;
    const program = new TensorProgram(device, { residentBytesMax });
    const ledger = new Ledger();
    const blocks = [64, 128, 200, 30].map((rowCount) => createWideBlock(random, rowCount));
    for (const turn of [0, 1, 2, 3, 0, 0, 2, 2, 1, 1, 1]) {
      search(program, blocks[turn]!, random, 1);
      ledger.update(program);
      const matrixBytes = device.matrixCount() * chunkBytes;
      assert.ok(matrixBytes <= ledger.total && ledger.total <= residentBytesMax);
    }
    assert.equal(device.matrixCount(), 2);
    for (const { key } of blocks) program.unload(key);
    ledger.update(program);
    assert.equal(device.matrixCount(), 0);
    assert.equal(ledger.total, 0);
  });

  it('keeps some chunks resident when repeated scans do not fit', () => {
    const random = createRandom(SEED);
    const device = new FloatDevice(random);
    const program = new TensorProgram(device, { residentBytesMax: 3.2 * 64 * WIDE * 4 });
    const blocks = Array.from({ length: 5 }, () => createWideBlock(random, 64));
    const walk = () => {
      const before = device.loadCount;
      for (const block of blocks) search(program, block, random, 1);
      // One load per search is for the query; rows that are not resident are scored.
      return device.loadCount - before;
    };
    walk();
    assert.equal(walk(), 3, 'three of five stay, so only their queries are loaded');
    assert.equal(walk(), 3);
  });

  it('evicts a block that is no longer searched to make room for one that is', () => {
    const random = createRandom(SEED);
    const program = new TensorProgram(new FloatDevice(random), {
      residentBytesMax: 1.5 * 64 * WIDE * 4,
    });
    const ledger = new Ledger();
    const [old, young] = [createWideBlock(random, 64), createWideBlock(random, 64)];
    const chunkBytes = 64 * WIDE * 4;
    for (const block of [old, old, young]) search(program, block, random, 1);
    ledger.update(program);
    assert.ok(ledger.of(old.key) >= chunkBytes, 'one search of another block changes nothing');
    search(program, young, random, 1);
    ledger.update(program);
    assert.ok(ledger.of(old.key) < chunkBytes && ledger.of(young.key) >= chunkBytes);
  });

  it('loads only newly completed chunks of a growing block', () => {
    const random = createRandom(SEED);
    const device = new FloatDevice(random);
    const program = new TensorProgram(device, { residentBytesMax: 2 ** 30 });
    const values = createValues(random, 'scaled', 200, WIDE);
    const ids = createIds(random, 200);
    const residentCounts = [10, 64, 65, 130, 200, 130].map((rowCount) => {
      const view = createBlock(
        values.slice(0, rowCount * WIDE),
        WIDE,
        ids.slice(0, rowCount),
        'growing',
      );
      search(program, view, random, 1);
      return device.matrixCount();
    });
    assert.deepEqual(residentCounts, [0, 1, 1, 2, 3, 3]);
  });

  it('scans different queries in each chunk according to their bitmaps', () => {
    const random = createRandom(SEED);
    const block = createWideBlock(random, 4 * 64);
    const program = new TensorProgram(new FloatDevice(random), { residentBytesMax: 2 ** 30 });
    // In chunk c, query i is scanned where bit c of its pattern is set, and has one row elsewhere.
    const queries = [0b0001, 0b0110, 0b1010, 0b0111, 0b1000].map((pattern, index) => {
      const rows = createBitmap(block.rowCount);
      for (let row = 0; row < block.rowCount; row++) {
        if (row % 64 === 17 || (pattern >> (row >> 6)) % 2 === 1) setBit(rows, row);
      }
      const vector = createVector(random, block, 'random');
      return createQuery(block, vector, { metric: METRICS[index % 3]!, rows, k: 5 });
    });
    const hits = program.search(block, packQueries(block, queries.map(toBlockQuery)))!;
    for (const [index, query] of queries.entries()) {
      assertTrueHits(toSearchHits(hits[index]!), bruteForce(query), `seed ${SEED}`);
    }
  });

  it('frees all tensors on the real device', async () => {
    const random = createRandom(SEED);
    const device: MatrixDevice = await createWasmDevice();
    const program = new TensorProgram(device, { residentBytesMax: 2 ** 30 });
    const block = createRandomBlock(random, 'clustered', 4_096 + 700, 256);
    for (let turn = 0; turn < 5; turn++) {
      for (const queryCount of [1, 2, 7]) {
        const queries = Array.from({ length: queryCount }, (_, row) =>
          createQuery(block, rowOf(block, row)),
        );
        program.search(block, packQueries(block, queries.map(toBlockQuery)));
      }
      assert.equal(device.matrixCount(), 1, 'the full chunk is resident, and nothing else is');
    }
    search(program, block, random, 3);
    program.unload(block.key);
    assert.equal(device.matrixCount(), 0);
  });
});
