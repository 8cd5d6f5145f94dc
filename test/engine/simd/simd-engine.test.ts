import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { ROW_CODE_NAMES } from '../../../src/common/types.js';
import type { Engine } from '../../../src/engine/core/engine.js';
import { createSimdEngine } from '../../../src/engine/simd/simd-engine.js';
import type { Kernels } from '../../../src/engine/simd/simd-kernels.js';
import { createInlinePool, createThreadPool, type WorkerPool } from '../../../src/platform/pool.js';
import { withCodes } from '../../../src/tools/selftest/encoding-engine.js';
import { IS_NIGHTLY } from '../../support/nightly.js';
import { type PromiseWithResolvers, withResolvers } from '../../support/waiting.js';
import {
  assertTrueHits,
  bruteForce,
  bruteForceCounts,
  createQuery,
  createRandom,
  createRandomBlock,
  createVector,
  idOf,
  rowOf,
  SEED,
  trueScore,
} from '../blocks.js';
import { engineContract } from '../contract.js';
import { loadedKernels } from './loaded-kernels.js';

const kernels = loadedKernels();
if (kernels === null) {
  test('the simd engine', { skip: 'the kernels are not built: no C++ compiler' }, () => {});
} else {
  testEngine(kernels);
}

function testEngine(kernels: Kernels): void {
  // The best target; simd-contract.ci.test.ts tests the others.
  engineContract('simd', 'quick', async () =>
    withCodes(createSimdEngine({ pool: createInlinePool() })),
  );

  describe('the simd engine and its threads', () => {
    let pool: WorkerPool;
    let engine: Engine;
    before(async () => {
      pool = createThreadPool({ threadCount: 3 });
      engine = withCodes(createSimdEngine({ pool, target: kernels.targets()[0]! }));
      // Starts the threads.
      await engine.search(createQueries(3));
    });
    after(async () => {
      await engine.close();
      await pool.close();
    });

    const random = createRandom(SEED);
    const block = createRandomBlock(random, 'clustered', IS_NIGHTLY ? 30_000 : 20_000, 100);
    const createQueries = (count: number) =>
      Array.from({ length: count }, () =>
        createQuery(block, createVector(random, block, 'random')),
      );

    it('answers concurrent batches as brute force does', async () => {
      await Promise.all(
        (IS_NIGHTLY ? [1, 2, 3, 7, 20, 1] : [1, 2]).map(async (count) => {
          const queries = createQueries(count);
          const hits = await engine.search(queries);
          for (const [i, query] of queries.entries()) {
            assertTrueHits(hits[i]!, bruteForce(query), `${count} queries, seed ${SEED}`);
          }
        }),
      );
    });

    it('answers as brute force does when the calling thread takes part', async () => {
      for (const query of createQueries(IS_NIGHTLY ? 60 : 4)) {
        const [hits] = await engine.search([query], { mayBlock: true });
        assertTrueHits(hits!, bruteForce(query), `seed ${SEED}`);
      }
    });

    it('rejects a search aborted while it runs, and answers the next', async () => {
      const controller = new AbortController();
      const searched = engine.search(createQueries(600), { signal: controller.signal });
      setTimeout(() => controller.abort(new Error('the client went away')), 2);
      await assert.rejects(searched, /the client went away/);
      const query = createQuery(block, rowOf(block, 7));
      const [hits] = await engine.search([query]);
      assertTrueHits(hits!, bruteForce(query), 'after an abort');
    });

    it('counts the rows before rank keys as brute force does', async () => {
      const { vector, metric, views } = createQueries(1)[0]!;
      const rankKeys = Array.from({ length: 20 }, (_, i) => ({
        score: trueScore(metric, vector, rowOf(block, 1_000 * i)),
        id: idOf(block, 1_000 * i),
      }));
      const query = { vector, metric, views };
      const counts = await engine.countBefore!(query, rankKeys);
      assert.deepEqual([...counts], bruteForceCounts(query, rankKeys), `seed ${SEED}`);
    });

    it('rejects a count aborted while it runs, and answers the next', async () => {
      const [query] = createQueries(1);
      const rankKey = { score: 0.5, id: idOf(block, 0) };
      const views = new Array(200).fill(query!.views[0]);
      const controller = new AbortController();
      const counted = engine.countBefore!({ ...query!, views }, [rankKey], {
        signal: controller.signal,
      });
      controller.abort(new Error('the client went away'));
      await assert.rejects(counted, /the client went away/);
      const counts = await engine.countBefore!(query!, [rankKey]);
      assert.deepEqual([...counts], bruteForceCounts(query!, [rankKey]));
    });

    it('encodes many rows in the pool as on the calling thread', async () => {
      const encoder = engine.rowEncoder!;
      const { values, dimension, rowCount } = block;
      const atOnce = encoder.allocate(rowCount, dimension);
      const inPool = encoder.allocate(rowCount, dimension);
      encoder.encode({ values, dimension, from: 0, to: rowCount, codes: atOnce });
      await encoder.encodeAll({ values, dimension, from: 0, to: 1_000, codes: inPool });
      await encoder.encodeAll({ values, dimension, from: 1_000, to: rowCount, codes: inPool });
      assert.deepEqual(inPool, atOnce);
      const byteLengths = encoder.byteLengths(rowCount, dimension);
      for (const name of ROW_CODE_NAMES) {
        assert.equal(kernels.alignmentOffset(inPool[name]!), 0);
        assert.equal(inPool[name]!.length, byteLengths[name]);
        assert.ok(inPool[name]!.some((byte) => byte !== 0));
      }
    });

    it('makes coarse codes from dimension 64 on', () => {
      const encoder = engine.rowEncoder!;
      assert.equal(encoder.allocate(10, 63).coarse, null);
      assert.equal(encoder.byteLengths(10, 63).refinement, 0);
      assert.ok(encoder.allocate(10, 64).refinement !== null);
    });
  });

  describe('the simd engine when the pool is busy or fails', () => {
    const random = createRandom(SEED);
    const block = createRandomBlock(random, 'random', 20_000, 64);
    const query = createQuery(block, rowOf(block, 0));

    /** Creates a pool whose tasks the test resolves. */
    function createStubPool() {
      const tasks: PromiseWithResolvers<never>[] = [];
      const pool: WorkerPool = {
        threadCount: 2,
        run() {
          const task = withResolvers<never>();
          tasks.push(task);
          return task.promise;
        },
        async close() {},
      };
      return { pool, tasks };
    }

    it('completes a short search on the calling thread, if that may block', async () => {
      const { pool, tasks } = createStubPool();
      const engine = createSimdEngine({ pool });
      const [hits] = await engine.search([query], { mayBlock: true });
      assertTrueHits(hits!, bruteForce(query), `seed ${SEED}`);
      // One task replaces one of the two threads; the other thread would find no work.
      assert.equal(tasks.length, 1);
      tasks[0]!.resolve(false as never);
      await engine.close();
    });

    it('leaves a long search to the pool, even if the calling thread may block', async () => {
      const { pool, tasks } = createStubPool();
      const engine = createSimdEngine({ pool });
      const searched = engine.search(new Array(600).fill(query), { mayBlock: true });
      assert.equal(tasks.length, 2);
      for (const task of tasks) task.resolve(false as never);
      await assert.rejects(searched, /no thread of the pool completed the search/);
      await engine.close();
    });

    it('rejects when no thread completed the search', async () => {
      const { pool, tasks } = createStubPool();
      const engine = createSimdEngine({ pool });
      const searched = engine.search([query]);
      for (const task of tasks) task.resolve(false as never);
      await assert.rejects(searched, /no thread of the pool completed the search/);
      await engine.close();
    });

    it('rejects with the error of a thread', async () => {
      const { pool, tasks } = createStubPool();
      const engine = createSimdEngine({ pool });
      const searched = engine.search([query]);
      for (const task of tasks) task.reject(new Error('the thread died'));
      await assert.rejects(searched, /the thread died/);
      await engine.close();
    });

    it('closes after the last thread has ended its work', async () => {
      const { pool, tasks } = createStubPool();
      const engine = createSimdEngine({ pool });
      const searched = engine.search([query]);
      let isClosed = false;
      const closed = engine.close().then(() => {
        isClosed = true;
      });
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(isClosed, false);
      for (const task of tasks) task.reject(new Error('the pool closed'));
      await assert.rejects(searched, /the pool closed/);
      await closed;
    });
  });

  describe('the choice of a target', () => {
    it('rejects an unsupported target and lists the supported ones', () => {
      const missing = ['avx512_vnni', 'neon_dotprod'].find(
        (name) => !kernels.targets().includes(name),
      )!;
      assert.throws(
        () => createSimdEngine({ pool: createInlinePool(), target: missing }),
        new RegExp(`does not support ${missing}; it supports .*reference`),
      );
    });
  });

  describe('the kernels', () => {
    const encode = (dimension: number, to: number, valueCount: number, byteCount: number) =>
      kernels.encode(
        new Float32Array(valueCount),
        dimension,
        0,
        to,
        new Uint8Array(byteCount),
        null,
        null,
      );

    it('reject arrays that are too short', () => {
      assert.throws(() => encode(8, 5, 39, 10_000), /fewer values than rows/);
      assert.throws(() => encode(8, 5, 40, 100), /the codes do not fit their array/);
      assert.throws(() => encode(0, 5, 40, 10_000), RangeError);
      assert.throws(() => kernels.takeHits(4_000_000), /unknown ticket/);
      assert.throws(() => kernels.takeCounts(4_000_000), /unknown ticket/);
      const bytes = new Uint8Array(160) as unknown as Float32Array;
      const codes = new Uint8Array(10_000);
      assert.throws(() => kernels.encode(bytes, 4, 0, 5, codes, null, null), TypeError);
      const values = new Float32Array(5 * 64);
      assert.throws(
        () => kernels.encode(values, 64, 0, 5, codes, codes, codes.subarray(0, 100)),
        /the coarse codes do not fit their arrays/,
      );
      assert.equal(kernels.work(4_000_000), false);
    });
  });
}
