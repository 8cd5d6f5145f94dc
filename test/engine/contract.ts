// What every engine must do, run for each of them: the rows and the score bits of brute force,
// whatever the data, the batch and the history of the block. Here over one block; what several
// blocks add is in contract-parts.ts.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createBitmap, createFullBitmap, setBit } from '../../src/bitmap.js';
import type { Engine, Position, SearchQuery } from '../../src/engine/engine.js';
import { publicScore } from '../../src/engine/engine.js';
import { METRICS, type Metric, type VectorBlock } from '../../src/types.js';
import {
  bruteForce,
  checkAnswers,
  createBlock,
  createIds,
  createQuery,
  createRandom,
  createRandomBitmap,
  createRandomBlock,
  createValues,
  createVector,
  idOf,
  type Random,
  type RowKind,
  randomInt,
  rowOf,
  SEED,
  trueScore,
} from './blocks.js';
import { partsContract } from './contract-parts.js';

/** Dimension and row count, around the bounds of lanes, words and chunks. */
const SHAPES: readonly (readonly [dimension: number, rowCount: number])[] = [
  ...[1, 3, 7, 8, 9, 64, 100, 256, 768].flatMap((dimension) =>
    [0, 1, 31, 32, 33].map((rowCount) => [dimension, rowCount] as const),
  ),
  [1, 1_000],
  [9, 1_000],
  [64, 1_000],
  [256, 1_000],
  // More than a chunk of the tensor engines.
  [768, 1_500],
];

const KINDS: readonly RowKind[] = [
  'random',
  'clustered',
  'duplicates',
  'equal',
  'outlier',
  'scaled',
  'denormal',
  'huge',
  'zeros',
  'scattered',
];

export function engineContract(name: string, create: () => Promise<Engine>): void {
  describe(`the ${name} engine`, () => {
    let engine: Engine;
    before(async () => {
      console.log(`SAGITTA_TEST_SEED=${SEED}`);
      engine = await create();
    });
    after(() => engine.close());

    const check = (queries: SearchQuery[], message = '') => checkAnswers(engine, queries, message);

    it('says its name', () => {
      assert.equal(engine.name, name);
    });

    it('answers an empty batch with nothing', async () => {
      assert.deepEqual(await engine.search([]), []);
    });

    for (const kind of KINDS) {
      it(`answers as brute force does over ${kind} rows`, async () => {
        const random = createRandom(SEED);
        for (const [dimension, rowCount] of SHAPES) {
          const block = createRandomBlock(random, kind, rowCount, dimension);
          const queryCount = 1 + randomInt(random, 9);
          const queries = Array.from({ length: queryCount }, () =>
            createRandomQuery(random, block, kind),
          );
          await check(queries, kind);
          engine.unload(block.key);
        }
      });
    }

    for (const kind of ['random', 'duplicates', 'scaled', 'scattered'] as const) {
      it(`answers as brute force does over 40 000 ${kind} rows`, async () => {
        const random = createRandom(SEED + 1);
        const dimension = kind === 'duplicates' ? 9 : 3;
        const block = createRandomBlock(random, kind, 40_000, dimension);
        await check([createRandomQuery(random, block, kind)], kind);
        const queries = METRICS.map((metric) =>
          createQuery(block, createVector(random, block, kind), { metric, k: 20 }),
        );
        await check(queries, kind);
      });
    }

    it('breaks ties at the k-th place by id bytes', async () => {
      const random = createRandom(SEED);
      for (const rowCount of [50, 3_000]) {
        const dimension = 400;
        const values = createValues(random, 'equal', rowCount, dimension);
        const block = createBlock(values, dimension, createIds(random, rowCount));
        const byId = Array.from({ length: rowCount }, (_, row) => row).sort((a, b) =>
          Buffer.compare(idOf(block, a), idOf(block, b)),
        );
        for (const metric of METRICS) {
          const query = createQuery(block, rowOf(block, 0), { metric, k: 7 });
          const [hits] = await engine.search([query]);
          assert.deepEqual([...hits!.rows], byId.slice(0, 7));
        }
      }
    });

    it('gives all rows when k is larger than their number', async () => {
      const block = createRandomBlock(createRandom(SEED), 'random', 40, 8);
      const queries = METRICS.map((metric) =>
        createQuery(block, rowOf(block, 3), { metric, k: 10_000 }),
      );
      for (const hits of await check(queries)) assert.equal(hits.rows.length, 40);
    });

    it('scores zero vectors 0 under cosine', async () => {
      const dimension = 100;
      const random = createRandom(SEED);
      const values = createValues(random, 'random', 30, dimension);
      values.fill(-0, 0, 10 * dimension);
      const block = createBlock(values, dimension, createIds(random, 30));
      await check([
        createQuery(block, rowOf(block, 20), { k: 30 }),
        createQuery(block, new Float32Array(dimension), { k: 30 }),
        createQuery(block, new Float32Array(dimension), { k: 30, metric: 'euclidean' }),
        createQuery(block, new Float32Array(dimension), { k: 30, metric: 'dot' }),
      ]);
    });

    it('searches only the rows that a bitmap has and that are before the row count', async () => {
      const random = createRandom(SEED);
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
    });

    it('walks page by page through what one big query gives', async () => {
      const random = createRandom(SEED);
      for (const kind of ['clustered', 'duplicates', 'equal'] as const) {
        const block = createRandomBlock(random, kind, 1_500, 768);
        for (const metric of METRICS) {
          const vector = createVector(random, block, kind);
          const rows = createRandomBitmap(random, block.rowCount, 0.7);
          const [whole] = await engine.search([
            createQuery(block, vector, { metric, k: 10_000, rows }),
          ]);
          const walked: number[] = [];
          let position: Position | null = null;
          for (;;) {
            const query: SearchQuery = createQuery(block, vector, {
              metric,
              k: 150,
              rows,
              after: position,
            });
            const [page] = await engine.search([query]);
            if (page!.rows.length === 0) break;
            walked.push(...page!.rows);
            position = {
              score: page!.scores.at(-1)!,
              id: idOf(block, page!.rows.at(-1)!),
            };
          }
          assert.deepEqual(walked, [...whole!.rows], `${kind}, ${metric}, seed ${SEED}`);
        }
      }
    });

    it('keeps exactly the rows whose rounded public score reaches the bound', async () => {
      const random = createRandom(SEED);
      for (const kind of ['random', 'clustered', 'zeros'] as const) {
        const block = createRandomBlock(random, kind, 1_500, 768);
        for (const metric of METRICS) {
          const vector = createVector(random, block, kind);
          const all = bruteForce(createQuery(block, vector, { metric, k: 1_500 }));
          const queries = [0, 3, 700, 1_499].flatMap((place) => {
            const reached = Math.fround(publicScore(metric, all.scores[place]!));
            return [reached, reached * (1 + 1e-9), reached * (1 - 1e-9), reached + 1e-7].map(
              (scoreMin) => createQuery(block, vector, { metric, k: 800, scoreMin }),
            );
          });
          queries.push(createQuery(block, vector, { metric, scoreMin: 1e300 }));
          queries.push(createQuery(block, vector, { metric, scoreMin: -1e300 }));
          await check(queries, kind);
        }
      }
    });

    it('follows a block that grows under its key, and still answers for its past', async () => {
      const random = createRandom(SEED);
      const dimension = 400;
      const values = createValues(random, 'scaled', 6_000, dimension);
      const ids = createIds(random, 6_000);
      const views = [10, 2_000, 2_700, 2_701, 6_000, 2_700, 100, 6_000].map((rowCount) =>
        createBlock(
          values.slice(0, rowCount * dimension),
          dimension,
          ids.slice(0, rowCount),
          'grows',
        ),
      );
      for (const view of views) {
        const queries = METRICS.map((metric) =>
          createQuery(view, rowOf(view, randomInt(random, view.rowCount)), { metric }),
        );
        await check(queries.slice(0, 1));
        await check(queries);
      }
    });

    it('answers several batches at once, while blocks are forgotten', async () => {
      const random = createRandom(SEED);
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
      engine.unload('a key that was never seen');
    });

    it('answers a batch that is larger than it handles at once', async () => {
      const random = createRandom(SEED);
      const block = createRandomBlock(random, 'random', 300, 8);
      const queries = Array.from({ length: 600 }, () => createRandomQuery(random, block, 'random'));
      await check(queries);
    });

    it('leaves the arrays of its callers as they were', async () => {
      const random = createRandom(SEED);
      const block = createRandomBlock(random, 'huge', 2_700, 400);
      const values = block.values.slice();
      const queries = METRICS.map((metric) => createQuery(block, rowOf(block, 0), { metric }));
      const vectors = queries.map(({ vector }) => vector.slice());
      await engine.search(queries);
      assert.deepEqual(block.values, values);
      for (const [index, { vector }] of queries.entries()) assert.deepEqual(vector, vectors[index]);
    });

    partsContract(() => engine);
  });
}

/** A query with anything set. */
function createRandomQuery(random: Random, block: VectorBlock, kind: RowKind): SearchQuery {
  const metric: Metric = METRICS[randomInt(random, METRICS.length)]!;
  const rowCount = random() < 0.7 ? block.rowCount : randomInt(random, block.rowCount + 1);
  const query = createQuery(block, createVector(random, block, kind), {
    metric,
    k: [1, 2, 10, 100, 10_000][randomInt(random, 5)]!,
    rowCount,
    rows: random() < 0.5 ? null : createRandomBitmap(random, block.rowCount, random() ** 3),
  });
  if (rowCount === 0 || random() < 0.6) return query;
  const row = randomInt(random, rowCount);
  const score = trueScore(metric, query.vector, rowOf(block, row));
  if (random() < 0.5) return { ...query, after: { score, id: idOf(block, row) } };
  return { ...query, scoreMin: Math.fround(publicScore(metric, score)) };
}
