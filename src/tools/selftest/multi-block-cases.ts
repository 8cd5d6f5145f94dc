// Contract cases for queries over several blocks: the answer is a single one in a single order, whichever blocks the
// query and the other queries of its batch search.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { createBitmap, setBit } from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import { METRICS, type VectorBlock } from '../../common/types.js';
import { type BlockView, publicScore, type SearchHits } from '../../engine/core/engine.js';
import {
  createBlock,
  createBlocks,
  createMultiBlockQuery,
  createQuery,
  createRandom,
  createRandomBitmap,
  createVector,
  fullView,
  idOf,
  ROW_KINDS,
  rowOf,
} from './blocks.js';
import type { ContractCase } from './contract-case.js';
import { createRandomMultiBlockQuery } from './random-queries.js';
import { assertTrueHits, bruteForce } from './truth.js';

/** Dimension and row counts of the blocks: empty, tiny, around a bitmap word, and more than a chunk. */
const SHAPES: readonly (readonly [dimension: number, rowCounts: readonly number[]])[] = [
  [1, [33, 0, 400, 1, 64]],
  [9, [700, 32, 31, 0, 1_000]],
  [64, [1, 300, 65, 500, 2]],
  [768, [1_400, 7, 0, 200, 1_500]],
];

export const MULTI_BLOCK_CASES: readonly ContractCase[] = [
  ...ROW_KINDS.filter((kind) => kind !== 'denormal' && kind !== 'huge').map(
    (kind): ContractCase => ({
      name: `answers over several blocks of ${kind} rows as brute force does`,
      isQuick: kind === 'clustered',
      async run({ engine, seed, check }) {
        const random = createRandom(seed + 2);
        for (const [dimension, rowCounts] of SHAPES) {
          const blocks = createBlocks(random, kind, rowCounts, dimension);
          for (const queryCount of [1, 6]) {
            const queries = Array.from({ length: queryCount }, () =>
              createRandomMultiBlockQuery(random, blocks, kind),
            );
            await check(queries, kind);
          }
          for (const { key } of blocks) engine.unload(key);
        }
      },
    }),
  ),

  {
    name: 'breaks ties across blocks by id bytes',
    isQuick: true,
    async run({ seed, check }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'equal', [200, 3, 1_500, 40], 700);
      const byId = blocks
        .flatMap((block, view) =>
          Array.from({ length: block.rowCount }, (_, row) => ({ view, row, id: idOf(block, row) })),
        )
        .sort((a, b) => Buffer.compare(a.id, b.id));
      for (const metric of METRICS) {
        for (const k of [1, 25, 10_000]) {
          const vector = rowOf(blocks[0]!, 0);
          const query = createMultiBlockQuery(blocks.map(fullView), vector, { metric, k });
          const [hits] = await check([query]);
          const expected = byId.slice(0, k);
          assert.deepEqual(
            [...hits!.viewIndexes],
            expected.map(({ view }) => view),
          );
          assert.deepEqual(
            [...hits!.rows],
            expected.map(({ row }) => row),
          );
        }
      }
    },
  },

  {
    name: 'numbers views by their order in the query',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'random', [90, 0, 120, 50], 8);
      const vector = createVector(random, blocks[0]!, 'random');
      const [forwards, backwards] = await check([
        createMultiBlockQuery(blocks.map(fullView), vector, { k: 200 }),
        createMultiBlockQuery(blocks.map(fullView).reverse(), vector, { k: 200 }),
      ]);
      assert.deepEqual(
        [...forwards!.viewIndexes],
        [...backwards!.viewIndexes].map((view) => 3 - view),
      );
      assert.deepEqual(forwards!.rows, backwards!.rows);
    },
  },

  {
    name: 'returns the same rows page by page over several blocks',
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      for (const kind of ['clustered', 'duplicates', 'equal'] as const) {
        const blocks = createBlocks(random, kind, [400, 1_400, 90], 768);
        for (const metric of METRICS) {
          const vector = createVector(random, blocks[1]!, kind);
          const views = blocks.map((block) => ({
            ...fullView(block),
            rows: createRandomBitmap(random, block.rowCount, 0.7),
          }));
          const query = createMultiBlockQuery(views, vector, { metric, k: 10_000 });
          const [all] = await check([query]);
          const walked: number[][] = [];
          let rankKey: RankKey | null = null;
          for (;;) {
            const [page]: SearchHits[] = await engine.search([
              { ...query, k: 150, after: rankKey },
            ]);
            walked.push(...viewRows(page!));
            if (page!.rows.length < 150) break;
            const block = blocks[page!.viewIndexes.at(-1)!]!;
            rankKey = { score: page!.scores.at(-1)!, id: idOf(block, page!.rows.at(-1)!) };
          }
          assert.ok(walked.length > 1_000);
          assert.deepEqual(walked, viewRows(all!), `${kind}, ${metric}, seed ${seed}`);
        }
      }
    },
  },

  {
    name: 'applies the score limit to rounded public scores over several blocks',
    async run({ seed, check }) {
      const random = createRandom(seed);
      for (const kind of ['clustered', 'zeros'] as const) {
        const blocks = createBlocks(random, kind, [700, 30, 1_400], 768);
        for (const metric of METRICS) {
          const vector = createVector(random, blocks[0]!, kind);
          const query = createMultiBlockQuery(blocks.map(fullView), vector, { metric, k: 10_000 });
          const all = bruteForce(query);
          const queries = [3, 1_000].flatMap((rank) => {
            const reached = Math.fround(publicScore(metric, all.scores[rank]!));
            return [reached, reached * (1 + 1e-9), reached * (1 - 1e-9), reached + 1e-7].map(
              (scoreMin) => ({ ...query, scoreMin }),
            );
          });
          queries.push({ ...query, scoreMin: 1e300 }, { ...query, k: 5, scoreMin: -1e300 });
          await check(queries, kind);
        }
      }
    },
  },

  {
    name: 'answers a batch in which queries share some of their blocks',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'clustered', [300, 1_400, 0, 700, 65, 1_500], 768);
      const queries = blocks.flatMap((_, first) =>
        [1, 2, 4].map((count) => {
          const views = blocks.slice(first, first + count).map(fullView);
          const vector = createVector(random, blocks[first]!, 'clustered');
          return createMultiBlockQuery(views, vector, {
            metric: METRICS[count % 3]!,
            k: 3 * count,
          });
        }),
      );
      await check(queries);
    },
  },

  {
    name: 'answers a batch of different dimensions and metrics',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const families = [3, 64, 700, 9].map((dimension) =>
        createBlocks(random, 'random', [1_500, 20, 300], dimension),
      );
      const queries = Array.from({ length: 24 }, (_, index) =>
        createRandomMultiBlockQuery(random, families[index % 4]!, 'random'),
      );
      await check(queries);
    },
  },

  {
    name: 'returns no hits for a query without views or without searched rows',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const [full, empty, other] = createBlocks(random, 'random', [500, 0, 300], 16) as [
        VectorBlock,
        VectorBlock,
        VectorBlock,
      ];
      const vector = createVector(random, full, 'random');
      const noRows = { block: full, rowCount: 0, rows: null };
      const masked = { block: full, rowCount: 500, rows: createBitmap(500) };
      // A bitmap whose only row is beyond the row count.
      const pastCount = { block: full, rowCount: 400, rows: createBitmap(500) };
      setBit(pastCount.rows, 450);
      const viewLists: BlockView[][] = [
        [],
        [noRows],
        [fullView(empty)],
        [masked],
        [pastCount],
        [noRows, fullView(empty), masked, pastCount],
      ];
      const nothing = viewLists.map((views) => createMultiBlockQuery(views, vector));
      for (const hits of await check(nothing)) {
        assert.equal(hits.rows.length, 0);
        assert.equal(hits.scannedCount, 0);
      }
      const something = createMultiBlockQuery(
        [noRows, fullView(other), masked, fullView(empty), fullView(full), pastCount],
        vector,
        { k: 1_000 },
      );
      const [, hits] = await check([nothing[0]!, something, nothing[5]!]);
      assert.equal(hits!.rows.length, 800);
    },
  },

  {
    name: 'searches old and new versions of a growing block in one batch',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const dimension = 400;
      const [grown, other] = createBlocks(random, 'scaled', [6_000, 300], dimension);
      const ids = Array.from({ length: 6_000 }, (_, row) => idOf(grown!, row).toString());
      const views = [2_700, 10, 6_000, 2_000].map((rowCount) =>
        createBlock(
          grown!.values.slice(0, rowCount * dimension),
          dimension,
          ids.slice(0, rowCount),
          grown!.key,
        ),
      );
      const queries = views.map((view, index) =>
        createMultiBlockQuery([fullView(other!), fullView(view)], rowOf(view, 3), {
          metric: METRICS[index % 3]!,
        }),
      );
      await check(queries.slice(0, 2));
      await check(queries);
    },
  },

  {
    name: 'answers concurrent batches over the same blocks while blocks are unloaded',
    isQuick: true,
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'clustered', [1_400, 300, 1_500], 768);
      await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const queries = Array.from({ length: 1 + (index % 3) }, () =>
            createRandomMultiBlockQuery(random, blocks, 'clustered'),
          );
          const checked = check(queries);
          engine.unload(blocks[index % 3]!.key);
          await checked;
        }),
      );
    },
  },

  {
    name: 'rejects when the signal is already aborted, and answers the next search',
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      const [block] = createBlocks(random, 'random', [1_400], 768);
      const query = createQuery(block!, rowOf(block!, 0));
      const reason = new Error('aborted before');
      const signal = AbortSignal.abort(reason);
      await assert.rejects(engine.search([query], { signal }), reason);
      await assert.rejects(engine.search([], { signal }), reason);
      await check([query]);
    },
  },

  {
    name: 'adds few listeners to a signal, whatever the number of blocks, and removes them',
    async run({ engine, seed }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'random', new Array(40).fill(50), 8);
      const query = createMultiBlockQuery(blocks.map(fullView), rowOf(blocks[0]!, 0));
      const { signal } = new AbortController();
      const searched = engine.search([query], { signal });
      assert.ok(
        getEventListeners(signal, 'abort').length <= 10,
        'Node warns about more than 10 listeners',
      );
      const [hits] = await searched;
      assert.equal(getEventListeners(signal, 'abort').length, 0);
      assertTrueHits(hits!, bruteForce(query), `seed ${seed}`);
    },
  },

  {
    name: 'answers correctly or rejects with the reason when it is aborted during the search',
    isQuick: true,
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      const blocks = createBlocks(random, 'random', [1_400, 1_500, 1_500], 768);
      const queries = Array.from({ length: 40 }, () =>
        createRandomMultiBlockQuery(random, blocks, 'random'),
      );
      const expected = await check(queries);
      for (const waitMs of [0, 1, 10]) {
        const controller = new AbortController();
        const reason = new Error(`aborted after ${waitMs} ms`);
        setTimeout(() => controller.abort(reason), waitMs);
        const [outcome] = await Promise.allSettled([
          engine.search(queries, { signal: controller.signal }),
        ]);
        if (outcome.status === 'rejected') assert.equal(outcome.reason, reason);
        else {
          assert.deepEqual(outcome.value.map(viewRows), expected.map(viewRows));
          assert.deepEqual(
            outcome.value.map(({ scores }) => scores),
            expected.map(({ scores }) => scores),
          );
        }
      }
      await check(queries.slice(0, 3));
    },
  },
];

/** The [view, row] pair of each hit. */
function viewRows({ viewIndexes, rows }: SearchHits): number[][] {
  return Array.from(viewIndexes, (view, rank) => [view, rows[rank]!]);
}
