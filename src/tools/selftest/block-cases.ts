// Contract cases for queries over one block: rows and score bits must equal those of brute force, whatever the data,
// the batch and the history of the block.

import assert from 'node:assert/strict';
import { createBitmap, createFullBitmap, setBit } from '../../common/bitmap.js';
import type { RankKey } from '../../common/rank-key.js';
import { METRICS } from '../../common/types.js';
import { publicScore, type SearchQuery } from '../../engine/core/engine.js';
import {
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBitmap,
  createRandomBlock,
  createValues,
  createVector,
  idOf,
  ROW_KINDS,
  randomInt,
  rowOf,
} from './blocks.js';
import type { ContractCase } from './contract-case.js';
import { createRandomQuery } from './random-queries.js';
import { bruteForce } from './truth.js';

/** Dimensions and row counts around the sizes of lanes, bitmap words and chunks. */
const SHAPES: readonly (readonly [dimension: number, rowCount: number])[] = [
  ...[1, 3, 7, 8, 9, 64, 100, 256, 768].flatMap((dimension) =>
    [0, 1, 31, 32, 33].map((rowCount) => [dimension, rowCount] as const),
  ),
  [1, 1_000],
  [9, 1_000],
  [64, 1_000],
  [256, 1_000],
  // More rows than a chunk of the tensor engines holds.
  [768, 1_500],
];

export const BLOCK_CASES: readonly ContractCase[] = [
  {
    name: 'reports its name',
    isQuick: true,
    async run({ engine, name }) {
      assert.equal(engine.name, name);
    },
  },

  {
    name: 'returns no results for an empty batch',
    isQuick: true,
    async run({ engine }) {
      assert.deepEqual(await engine.search([]), []);
    },
  },

  ...ROW_KINDS.map(
    (kind): ContractCase => ({
      name: `answers as brute force does over ${kind} rows`,
      isQuick: kind === 'random' || kind === 'duplicates',
      async run({ engine, seed, check }) {
        const random = createRandom(seed);
        for (const [dimension, rowCount] of SHAPES) {
          const block = createRandomBlock(random, kind, rowCount, dimension);
          const queryCount = 1 + randomInt(random, 9);
          const queries = Array.from({ length: queryCount }, () =>
            createRandomQuery(random, block, kind),
          );
          await check(queries, kind);
          engine.unload(block.key);
        }
      },
    }),
  ),

  ...(['random', 'duplicates', 'scaled', 'scattered'] as const).map(
    (kind): ContractCase => ({
      name: `answers as brute force does over 40 000 ${kind} rows`,
      async run({ seed, check }) {
        const random = createRandom(seed + 1);
        const dimension = kind === 'duplicates' ? 9 : 3;
        const block = createRandomBlock(random, kind, 40_000, dimension);
        await check([createRandomQuery(random, block, kind)], kind);
        const queries = METRICS.map((metric) =>
          createQuery(block, createVector(random, block, kind), { metric, k: 20 }),
        );
        await check(queries, kind);
      },
    }),
  ),

  {
    name: 'answers as brute force does where few directions tell rows apart',
    isQuick: true,
    async run({ seed, check }) {
      const random = createRandom(seed + 5);
      const block = createRandomBlock(random, 'directed', 2_100, 768);
      for (let i = 0; i < 8; i++)
        await check([createRandomQuery(random, block, 'directed')], 'directed');
    },
  },

  {
    name: 'answers as brute force does over blocks as large as segments grow',
    async run({ engine, seed, check }) {
      const random = createRandom(seed + 3);
      // The limits of a segment: 65 536 rows or 64 MiB of values, whichever comes first.
      for (const [rowCount, dimension] of [
        [65_536, 64],
        [21_845, 768],
      ] as const) {
        const block = createRandomBlock(random, 'clustered', rowCount, dimension);
        const queries = METRICS.map((metric, index) => {
          const rows = index === 1 ? createRandomBitmap(random, rowCount, 0.5) : null;
          return createQuery(block, createVector(random, block, 'clustered'), { metric, rows });
        });
        await check(queries.slice(0, 1));
        await check(queries);
        engine.unload(block.key);
      }
    },
  },

  {
    name: 'breaks ties at the k-th hit by id bytes',
    async run({ seed, check }) {
      const random = createRandom(seed);
      for (const rowCount of [50, 3_000]) {
        const dimension = 400;
        const values = createValues(random, 'equal', rowCount, dimension);
        const block = createBlock(values, dimension, createIds(random, rowCount));
        const byId = Array.from({ length: rowCount }, (_, row) => row).sort((a, b) =>
          Buffer.compare(idOf(block, a), idOf(block, b)),
        );
        for (const metric of METRICS) {
          const query = createQuery(block, rowOf(block, 0), { metric, k: 7 });
          const [hits] = await check([query]);
          assert.deepEqual([...hits!.rows], byId.slice(0, 7));
        }
      }
    },
  },

  {
    name: 'returns all rows when k is larger than their number',
    isQuick: true,
    async run({ seed, check }) {
      const block = createRandomBlock(createRandom(seed), 'random', 40, 8);
      const queries = METRICS.map((metric) =>
        createQuery(block, rowOf(block, 3), { metric, k: 10_000 }),
      );
      for (const hits of await check(queries)) assert.equal(hits.rows.length, 40);
    },
  },

  {
    name: 'scores zero vectors 0 under cosine',
    async run({ seed, check }) {
      const dimension = 100;
      const random = createRandom(seed);
      const values = createValues(random, 'random', 30, dimension);
      values.fill(-0, 0, 10 * dimension);
      const block = createBlock(values, dimension, createIds(random, 30));
      await check([
        createQuery(block, rowOf(block, 20), { k: 30 }),
        createQuery(block, new Float32Array(dimension), { k: 30 }),
        createQuery(block, new Float32Array(dimension), { k: 30, metric: 'euclidean' }),
        createQuery(block, new Float32Array(dimension), { k: 30, metric: 'dot' }),
      ]);
    },
  },

  {
    name: 'searches only the rows in the bitmap and below the row count',
    isQuick: true,
    async run({ seed, check }) {
      const random = createRandom(seed);
      const block = createRandomBlock(random, 'random', 3_000, 400);
      const single = createBitmap(block.rowCount);
      setBit(single, 1_777);
      const tail = createBitmap(block.rowCount);
      for (let row = 2_500; row < block.rowCount; row++) setBit(tail, row);
      const bitmaps = [
        null,
        createBitmap(block.rowCount),
        createFullBitmap(block.rowCount),
        single,
        tail,
        ...[0.001, 0.05, 0.12, 0.13, 0.5, 0.99].map((probability) =>
          createRandomBitmap(random, block.rowCount, probability),
        ),
      ];
      const queries = bitmaps.flatMap((rows) =>
        [0, 1, 33, 1_777, 1_778, 2_624, 3_000].map((rowCount, index) =>
          createQuery(block, rowOf(block, randomInt(random, block.rowCount)), {
            metric: METRICS[index % 3]!,
            rows,
            rowCount,
          }),
        ),
      );
      await check(queries);
      for (const query of queries.slice(0, 20)) await check([query]);
    },
  },

  {
    name: 'returns the same rows page by page as in one large query',
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      for (const kind of ['clustered', 'duplicates', 'equal'] as const) {
        const block = createRandomBlock(random, kind, 1_500, 768);
        for (const metric of METRICS) {
          const vector = createVector(random, block, kind);
          const rows = createRandomBitmap(random, block.rowCount, 0.7);
          const [all] = await check([createQuery(block, vector, { metric, k: 10_000, rows })]);
          const rowsOfPages: number[] = [];
          let rankKey: RankKey | null = null;
          for (;;) {
            const query: SearchQuery = createQuery(block, vector, {
              metric,
              k: 150,
              rows,
              after: rankKey,
            });
            const [page] = await engine.search([query]);
            if (page!.rows.length === 0) break;
            rowsOfPages.push(...page!.rows);
            rankKey = {
              score: page!.scores.at(-1)!,
              id: idOf(block, page!.rows.at(-1)!),
            };
          }
          assert.deepEqual(rowsOfPages, [...all!.rows], `${kind}, ${metric}, seed ${seed}`);
        }
      }
    },
  },

  {
    name: 'applies the score limit to rounded public scores',
    async run({ seed, check }) {
      const random = createRandom(seed);
      for (const kind of ['random', 'clustered', 'zeros'] as const) {
        const block = createRandomBlock(random, kind, 1_500, 768);
        for (const metric of METRICS) {
          const vector = createVector(random, block, kind);
          const all = bruteForce(createQuery(block, vector, { metric, k: 1_500 }));
          const queries = [0, 3, 700, 1_499].flatMap((rank) => {
            const reached = Math.fround(publicScore(metric, all.scores[rank]!));
            return [reached, reached * (1 + 1e-9), reached * (1 - 1e-9), reached + 1e-7].map(
              (scoreMin) => createQuery(block, vector, { metric, k: 800, scoreMin }),
            );
          });
          queries.push(createQuery(block, vector, { metric, scoreMin: 1e300 }));
          queries.push(createQuery(block, vector, { metric, scoreMin: -1e300 }));
          await check(queries, kind);
        }
      }
    },
  },

  {
    name: 'searches a growing block and its older versions under the same key',
    isQuick: true,
    async run({ seed, check }) {
      const random = createRandom(seed);
      const dimension = 400;
      const values = createValues(random, 'scaled', 6_000, dimension);
      const ids = createIds(random, 6_000);
      const versions = [10, 2_000, 2_700, 2_701, 6_000, 2_700, 100, 6_000].map((rowCount) =>
        createBlock(
          values.slice(0, rowCount * dimension),
          dimension,
          ids.slice(0, rowCount),
          'grows',
        ),
      );
      for (const version of versions) {
        const queries = METRICS.map((metric) =>
          createQuery(version, rowOf(version, randomInt(random, version.rowCount)), { metric }),
        );
        await check(queries.slice(0, 1));
        await check(queries);
      }
    },
  },

  {
    name: 'answers concurrent batches while blocks are unloaded',
    async run({ engine, seed, check }) {
      const random = createRandom(seed);
      const blocks = [3, 64, 256].map((dimension) =>
        createRandomBlock(random, 'clustered', 4_200, dimension),
      );
      await Promise.all(
        Array.from({ length: 12 }, async (_, index) => {
          const block = blocks[index % 3]!;
          const queries = Array.from({ length: 1 + (index % 4) }, () =>
            createRandomQuery(random, block, 'clustered'),
          );
          const checked = check(queries);
          if (index % 5 === 0) engine.unload(block.key);
          await checked;
        }),
      );
      engine.unload('unknown key');
    },
  },

  {
    name: 'answers a batch larger than it searches at once',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const block = createRandomBlock(random, 'random', 300, 8);
      const queries = Array.from({ length: 600 }, () => createRandomQuery(random, block, 'random'));
      await check(queries);
    },
  },

  {
    name: 'does not change the arrays of its callers',
    async run({ seed, check }) {
      const random = createRandom(seed);
      const block = createRandomBlock(random, 'huge', 2_700, 400);
      const values = block.values.slice();
      const queries = METRICS.map((metric) => createQuery(block, rowOf(block, 0), { metric }));
      const vectors = queries.map(({ vector }) => vector.slice());
      await check(queries);
      const isSame = values.every((value, i) => Object.is(value, block.values[i]));
      assert.ok(isSame, 'the engine changed values of rows');
      for (const [index, { vector }] of queries.entries()) assert.deepEqual(vector, vectors[index]);
    },
  },
];

/** Correct answers of a fallback engine would say nothing about this one. */
export const OWN_ANSWERS: ContractCase = {
  name: 'answers ordinary searches without its fallback',
  isQuick: true,
  async run({ seed, check, countFallbacks }) {
    const random = createRandom(seed + 4);
    const block = createRandomBlock(random, 'random', 20_000, 64);
    const before = countFallbacks();
    for (const queryCount of [1, 12]) {
      const queries = Array.from({ length: queryCount }, (_, index) =>
        createQuery(block, createVector(random, block, 'random'), { metric: METRICS[index % 3]! }),
      );
      await check(queries);
    }
    assert.equal(countFallbacks() - before, 0, 'the fallback engine answered');
  },
};
