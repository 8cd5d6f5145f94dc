import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VectorBlock } from '../../../src/common/types.js';
import {
  type BlockHits,
  type BlockQuery,
  searchPerBlock,
} from '../../../src/engine/core/per-block.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import type { Task, WorkerPool } from '../../../src/platform/pool.js';
import { createBlock, createMultiBlockQuery, createQuery } from '../blocks.js';

const vector = new Float32Array(1);

/** A block whose contents are not read. */
function createHollowBlock(key: string, rowCount: number): VectorBlock {
  return { ...createBlock(vector, 1, [], key), rowCount };
}

function noHits(): BlockHits {
  return {
    rows: new Uint32Array(0),
    scores: new Float64Array(0),
    scannedCount: 1,
    rescoredCount: 0,
  };
}

interface Call {
  readonly block: VectorBlock;
  readonly queries: readonly BlockQuery[];
  finish(): void;
}

/** A block search whose calls end when the test resolves them. */
function createCalls() {
  const calls: Call[] = [];
  const searchBlock = (block: VectorBlock, queries: readonly BlockQuery[]) =>
    new Promise<BlockHits[]>((resolve) => {
      calls.push({ block, queries, finish: () => resolve(queries.map(noHits)) });
    });
  return { calls, searchBlock };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('searchPerBlock', () => {
  it('searches each block once, concurrently, for all queries that have a view of it', async () => {
    const { calls, searchBlock } = createCalls();
    const [a, b, c] = ['a', 'b', 'c'].map((key) => createHollowBlock(key, 10));
    const queries = [
      [a, b],
      [b, c],
      [b, a],
    ].map((blocks, index) =>
      createMultiBlockQuery(
        blocks.map((block) => ({ block: block!, rowCount: 5 + index, rows: null })),
        vector,
      ),
    );
    const searched = searchPerBlock(queries, searchBlock, {});
    const asked = calls.map(
      ({ block, queries }) => `${block.key}: ${queries.map(({ rowCount }) => rowCount)}`,
    );
    assert.deepEqual(asked, ['a: 5,7', 'b: 5,6,7', 'c: 6']);
    for (const call of calls) call.finish();
    assert.deepEqual(
      (await searched).map(({ scannedCount }) => scannedCount),
      [2, 2, 2],
    );
  });

  it('searches the version of a block with the most rows', () => {
    const { calls, searchBlock } = createCalls();
    const queries = [3, 9, 5].map((rowCount) =>
      createQuery(createHollowBlock('grows', rowCount), vector),
    );
    searchPerBlock(queries, searchBlock, {});
    assert.equal(calls.length, 1);
    assert.equal(calls[0]!.block, queries[1]!.views[0]!.block);
  });

  it('does not search views without rows', async () => {
    const { calls, searchBlock } = createCalls();
    const block = createHollowBlock('a', 10);
    const queries = [
      createMultiBlockQuery([], vector),
      createQuery(block, vector, { rowCount: 0 }),
    ];
    for (const hits of await searchPerBlock(queries, searchBlock, {})) {
      assert.equal(hits.viewIndexes.length, 0);
      assert.equal(hits.scannedCount, 0);
    }
    assert.equal(calls.length, 0);
  });

  it('searches the next slice after queries with many hits', async () => {
    const { calls, searchBlock } = createCalls();
    const blocks = Array.from({ length: 300 }, (_, index) =>
      createHollowBlock(`${index}`, 2 ** 16),
    );
    const parts = blocks.map((block) => ({ block, rowCount: block.rowCount, rows: null }));
    // Three million hits per query; four million may be in memory at once.
    const queries = [1, 2].map(() => createMultiBlockQuery(parts, vector, { k: 10_000 }));
    const searched = searchPerBlock(queries, searchBlock, {});
    assert.deepEqual([calls.length, calls[0]!.queries.length], [300, 1]);
    for (const call of calls) call.finish();
    await turn();
    assert.equal(calls.length, 600);
    for (const call of calls) call.finish();
    assert.equal((await searched).length, 2);

    const small = queries.map((query) => ({ ...query, k: 10 }));
    searchPerBlock(small, searchBlock, {});
    assert.equal(calls.length, 900, 'small queries are searched together');
  });

  it('checks the signal before each slice', async () => {
    const { calls, searchBlock } = createCalls();
    const block = createHollowBlock('a', 2 ** 22);
    const queries = [1, 2].map(() => createQuery(block, vector, { k: 2 ** 22 }));
    const controller = new AbortController();
    const { signal } = controller;
    const searched = searchPerBlock(queries, searchBlock, { signal });
    controller.abort(new Error('given up'));
    calls[0]!.finish();
    await assert.rejects(searched, /^Error: given up$/);
    assert.equal(calls.length, 1);
  });

  it('rejects when a block search fails or returns a wrong number of results', async () => {
    const query = createQuery(createHollowBlock('a', 1), vector);
    const failing = async () => {
      throw new Error('the block failed');
    };
    await assert.rejects(searchPerBlock([query], failing, {}), /the block failed/);
    await assert.rejects(
      searchPerBlock([query], async () => [], {}),
      /one result per query/,
    );
  });
});

describe('the reference engine and its pool', () => {
  it('stops soon when a search is aborted', async () => {
    let runCount = 0;
    const pool: WorkerPool = {
      threadCount: 2,
      async run<Input, Output>(task: Task<Input, Output>, input: Input) {
        runCount++;
        await turn();
        return task.run(input);
      },
      async close() {},
    };
    const ids = Array.from({ length: 100 }, (_, row) => String(row).padStart(3, '0'));
    const block = createBlock(new Float32Array(100), 1, ids);
    const engine = createReferenceEngine({ pool, rangeRowCount: 1 });
    const [hits] = await engine.search([createQuery(block, vector)]);
    assert.equal(hits!.scannedCount, 100);
    assert.equal(runCount, 100);

    const controller = new AbortController();
    const searched = engine.search([createQuery(block, vector)], { signal: controller.signal });
    controller.abort(new Error('given up'));
    await assert.rejects(searched, /^Error: given up$/);
    await turn();
    assert.ok(runCount > 100 && runCount <= 104, `${runCount - 100} pieces`);
  });
});
