import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { VectorBlock } from '../../../src/common/types.js';
import type { Engine } from '../../../src/engine/core/engine.js';
import type { SearchBlock } from '../../../src/engine/core/per-block.js';
import { createReferenceSearch } from '../../../src/engine/core/reference-engine.js';
import { createTensorEngine } from '../../../src/engine/tensor/tensor-engine.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import {
  assertTrueHits,
  bruteForce,
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBlock,
  createValues,
  rowOf,
  SEED,
} from '../blocks.js';
import { engineContract } from '../contract.js';

const failingWorkerUrl = new URL('./failing-worker.js', import.meta.url);

engineContract('wasm', 'all', async () =>
  createTensorEngine({
    device: 'wasm',
    fallback: createReferenceSearch({ pool: createInlinePool() }),
    // The contract tests the thread, so an answer of the fallback must not count as its own.
    onThreadFailure: (error) => {
      throw error;
    },
  }),
);

/** Creates the reference search with a counter of its calls. */
function createCountingFallback() {
  const reference = createReferenceSearch({ pool: createInlinePool() });
  const search: SearchBlock = (...work) => {
    counting.searchCount++;
    return reference(...work);
  };
  const counting = { searchCount: 0, search };
  return counting;
}

/** Creates a block with one full chunk. */
function createNamedBlock(key: string): VectorBlock {
  const random = createRandom(SEED);
  const values = createValues(random, 'random', 1_400, 768);
  return createBlock(values, 768, createIds(random, 1_400), key);
}

async function checkSearch(engine: Engine, block: VectorBlock): Promise<void> {
  const query = createQuery(block, rowOf(block, 5));
  const [hits] = await engine.search([query]);
  assertTrueHits(hits!, bruteForce(query), block.key);
}

describe('the wasm engine and its thread', () => {
  for (const way of ['throws', 'exits']) {
    it(`uses the fallback when the thread ${way}, and a new thread afterwards`, async (test) => {
      const fallback = createCountingFallback();
      const deaths: { message: string; isLast: boolean }[] = [];
      const engine = await createTensorEngine({
        device: 'wasm',
        fallback: fallback.search,
        workerUrl: failingWorkerUrl,
        onThreadFailure: ({ message }, isLast) => deaths.push({ message, isLast }),
      });
      test.after(() => engine.close());
      const good = createNamedBlock('good');
      const bad = createNamedBlock(way);
      await checkSearch(engine, good);
      assert.equal(fallback.searchCount, 0);
      assert.ok(engine.bytesUsed('good').hostBytes > 1_344 * 768 * 4);

      // Searches queued behind the one that ends the thread are answered, too, by the thread or the fallback.
      await Promise.all([bad, good, good].map((block) => checkSearch(engine, block)));
      const fallbackCount = fallback.searchCount;
      assert.ok(fallbackCount >= 1);
      assert.equal(deaths.length, 1);
      assert.equal(deaths[0]!.isLast, false);
      assert.match(deaths[0]!.message, way === 'throws' ? /thrown for a test/ : /code 7/);
      assert.deepEqual(engine.bytesUsed('good'), { hostBytes: 0, deviceBytes: 0 });

      await checkSearch(engine, good);
      assert.equal(fallback.searchCount, fallbackCount);
      assert.ok(engine.bytesUsed('good').hostBytes > 0);
    });
  }

  it('uses only the fallback after three consecutive failures of the thread', async (test) => {
    const fallback = createCountingFallback();
    const lasts: boolean[] = [];
    const engine = await createTensorEngine({
      device: 'wasm',
      fallback: fallback.search,
      workerUrl: failingWorkerUrl,
      onThreadFailure: (_, isLast) => lasts.push(isLast),
    });
    test.after(() => engine.close());
    const [good, bad] = [createNamedBlock('good'), createNamedBlock('throws')];
    for (const block of [bad, bad, good, bad, bad, bad, bad, good])
      await checkSearch(engine, block);
    assert.deepEqual(lasts, [false, false, false, false, true]);
    assert.equal(fallback.searchCount, 7);
    engine.unload('good');
  });

  it('is not created when its thread does not start', async () => {
    const deaths: Error[] = [];
    const creation = createTensorEngine({
      device: 'wasm',
      fallback: createCountingFallback().search,
      workerUrl: new URL('../there-is-no-such-worker.js', import.meta.url),
      onThreadFailure: (error) => deaths.push(error),
    });
    await assert.rejects(creation, /there-is-no-such-worker/);
    assert.deepEqual(deaths, []);
  });

  it('reports its usage for a block until the block is unloaded', async (test) => {
    const engine = await createTensorEngine({
      device: 'wasm',
      fallback: createCountingFallback().search,
    });
    test.after(() => engine.close());
    const block = createNamedBlock('kept');
    assert.deepEqual(engine.bytesUsed('kept'), { hostBytes: 0, deviceBytes: 0 });
    await checkSearch(engine, block);
    // One chunk of 1 344 rows, and three numbers per row.
    assert.deepEqual(engine.bytesUsed('kept'), {
      hostBytes: 1_344 * 768 * 4 + 1_400 * 3 * 8,
      deviceBytes: 0,
    });
    engine.unload('kept');
    assert.deepEqual(engine.bytesUsed('kept'), { hostBytes: 0, deviceBytes: 0 });
  });

  it('gives the same answers with a budget of 0 and nothing resident', async (test) => {
    const engine = await createTensorEngine({
      device: 'wasm',
      fallback: createCountingFallback().search,
      residentBytesMax: 0,
    });
    test.after(() => engine.close());
    const random = createRandom(SEED);
    const block = createRandomBlock(random, 'clustered', 1_400, 768);
    const queries = [1, 2, 3, 4].map((row) => createQuery(block, rowOf(block, row)));
    for (const batch of [queries.slice(0, 1), queries]) {
      const hits = await engine.search(batch);
      for (const [index, query] of batch.entries()) {
        assertTrueHits(hits[index]!, bruteForce(query), `seed ${SEED}`);
      }
    }
    // Norms are freed when another block is searched.
    await checkSearch(engine, createNamedBlock('other'));
    assert.equal(engine.bytesUsed(block.key).hostBytes, 0);
  });

  it('answers a pending search when it is closed', async () => {
    const fallback = createCountingFallback();
    const engine = await createTensorEngine({ device: 'wasm', fallback: fallback.search });
    const searched = checkSearch(engine, createNamedBlock('closing'));
    await Promise.all([engine.close(), searched]);
    assert.equal(fallback.searchCount, 1);
  });

  it('skips searches aborted before the thread starts them', async (test) => {
    const fallback = createCountingFallback();
    const engine = await createTensorEngine({ device: 'wasm', fallback: fallback.search });
    test.after(() => engine.close());
    const first = checkSearch(engine, createNamedBlock('first'));
    const controller = new AbortController();
    const block = createNamedBlock('given up');
    const searched = engine.search([createQuery(block, rowOf(block, 0))], {
      signal: controller.signal,
    });
    controller.abort(new Error('given up'));
    await assert.rejects(searched, /^Error: given up$/);
    await first;
    assert.ok(engine.bytesUsed('first').hostBytes > 0);
    assert.deepEqual(engine.bytesUsed('given up'), { hostBytes: 0, deviceBytes: 0 });
    assert.equal(fallback.searchCount, 0);
  });

  it('can be closed while its thread restarts', async () => {
    const fallback = createCountingFallback();
    const engine = await createTensorEngine({
      device: 'wasm',
      fallback: fallback.search,
      workerUrl: failingWorkerUrl,
    });
    const [good, bad] = [createNamedBlock('good'), createNamedBlock('throws')];
    await checkSearch(engine, bad);
    const searched = checkSearch(engine, good);
    await Promise.all([engine.close(), searched]);
    assert.equal(fallback.searchCount, 2);
  });

  it('lets the process exit after it is closed', () => {
    const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    const script = `
      import(${url('../../../src/engine/tensor/tensor-engine.js')}).then(async ({ createTensorEngine }) => {
        const engine = await createTensorEngine({ device: 'wasm', fallback: null });
        await engine.close();
        console.log('closed');
      });`;
    const child = spawnSync(process.execPath, ['-e', script], {
      timeout: 60_000,
      encoding: 'utf8',
    });
    assert.equal(child.stderr, '');
    assert.equal(child.stdout, 'closed\n');
    assert.equal(child.status, 0);
  });
});
