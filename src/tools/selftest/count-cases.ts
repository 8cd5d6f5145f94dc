// Contract cases for ranks: the rows that come before rank keys in the order, counted as brute force does,
// by the engine's own way or in the pool.

import assert from 'node:assert/strict';
import type { RankKey } from '../../common/rank-key.js';
import { METRICS, type Metric, type VectorBlock } from '../../common/types.js';
import { countBefore } from '../../engine/core/count-before.js';
import type { CountedQuery } from '../../engine/core/engine.js';
import { createInlinePool } from '../../platform/pool.js';
import {
  createBlocks,
  createRandom,
  createRandomBitmap,
  createVector,
  fullView,
  idOf,
  type Random,
  ROW_KINDS,
  type RowKind,
  randomInt,
  rowOf,
} from './blocks.js';
import type { ContractCase, ContractContext } from './contract-case.js';
import { bruteForceCounts, trueScore } from './truth.js';

/** Dimension and row counts of the blocks. */
const SHAPES: readonly (readonly [dimension: number, rowCounts: readonly number[]])[] = [
  [1, [33, 0, 400]],
  [9, [700, 31]],
  [64, [1, 900, 65]],
  [768, [300, 7]],
];

export const COUNT_CASES: readonly ContractCase[] = [
  ...ROW_KINDS.map(
    (kind): ContractCase => ({
      name: `counts the rows before rank keys as brute force does over ${kind} rows`,
      isQuick: kind === 'random' || kind === 'duplicates',
      async run(context) {
        const random = createRandom(context.seed + 3);
        for (const [dimension, rowCounts] of SHAPES) {
          const blocks = createBlocks(random, kind, rowCounts, dimension);
          for (const metric of METRICS) {
            const query = createCountedQuery(random, blocks, kind, metric);
            for (const count of [1, 2, 70]) {
              const rankKeys = Array.from({ length: count }, () => pick(random, query));
              await checkCounts(context, query, rankKeys, kind);
            }
          }
          for (const { key } of blocks) context.engine.unload(key);
        }
      },
    }),
  ),

  {
    name: 'counts no rows without rank keys, views or rows',
    isQuick: true,
    async run(context) {
      const random = createRandom(context.seed);
      const [full, empty] = createBlocks(random, 'random', [300, 0], 16) as [
        VectorBlock,
        VectorBlock,
      ];
      const query: CountedQuery = { vector: rowOf(full, 0), metric: 'cosine', views: [] };
      const rankKeys = [{ score: -2, id: idOf(full, 0) }];
      await checkCounts(context, query, rankKeys, 'no views');
      await checkCounts(context, { ...query, views: [fullView(empty)] }, rankKeys, 'no rows');
      await checkCounts(context, { ...query, views: [fullView(full)] }, [], 'no rank keys');
      await checkCounts(context, { ...query, views: [fullView(full)] }, rankKeys, 'all rows');
    },
  },

  {
    name: 'rejects a count whose signal is aborted',
    isQuick: true,
    async run({ engine, seed }) {
      const [block] = createBlocks(createRandom(seed), 'random', [500], 32);
      const query = { vector: rowOf(block!, 0), metric: 'dot', views: [fullView(block!)] } as const;
      const rankKey = { score: 0, id: idOf(block!, 0) };
      const reason = new Error('aborted before');
      const options = { signal: AbortSignal.abort(reason) };
      const counted = countBefore({ engine, pool: createInlinePool() }, query, [rankKey], options);
      await assert.rejects(counted, reason);
    },
  },
];

async function checkCounts(
  { engine, seed }: ContractContext,
  query: CountedQuery,
  rankKeys: readonly RankKey[],
  message: string,
): Promise<void> {
  const counts = await countBefore({ engine, pool: createInlinePool() }, query, rankKeys);
  const what = `${query.metric}, dimension ${query.vector.length}, ${message}, seed ${seed}`;
  assert.deepEqual([...counts], bruteForceCounts(query, rankKeys), what);
}

/** A query over all blocks, some of them filtered and some only in part. */
function createCountedQuery(
  random: Random,
  blocks: readonly VectorBlock[],
  kind: RowKind,
  metric: Metric,
): CountedQuery {
  const views = blocks.map((block) => ({
    block,
    rowCount: random() < 0.7 ? block.rowCount : randomInt(random, block.rowCount + 1),
    rows: random() < 0.5 ? null : createRandomBitmap(random, block.rowCount, random() ** 2),
  }));
  return { vector: createVector(random, blocks[0]!, kind), metric, views };
}

/** The rank key of a row, or one with its score or near to it and another id. */
function pick(random: Random, { vector, metric, views }: CountedQuery): RankKey {
  const filled = views.filter(({ block }) => block.rowCount > 0);
  const { block } = filled[randomInt(random, filled.length)]!;
  const row = randomInt(random, block.rowCount);
  const score = trueScore(metric, vector, rowOf(block, row));
  const id = idOf(block, randomInt(random, 3) === 0 ? randomInt(random, block.rowCount) : row);
  return { score: randomInt(random, 8) === 0 ? score * (1 + 2 ** -40) : score, id };
}
