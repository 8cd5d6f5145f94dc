// Random queries: any metric, k, bitmap, row count, rank key and score limit.

import { METRICS, type VectorBlock } from '../../common/types.js';
import { type BlockView, publicScore, type SearchQuery } from '../../engine/core/engine.js';
import {
  createMultiBlockQuery,
  createQuery,
  createRandomBitmap,
  createVector,
  idOf,
  type Random,
  type RowKind,
  randomInt,
  rowOf,
} from './blocks.js';
import { trueScore } from './truth.js';

/** A random query over one block. */
export function createRandomQuery(random: Random, block: VectorBlock, kind: RowKind): SearchQuery {
  const metric = METRICS[randomInt(random, METRICS.length)]!;
  const rowCount = random() < 0.7 ? block.rowCount : randomInt(random, block.rowCount + 1);
  const query = createQuery(block, createVector(random, block, kind), {
    metric,
    k: [1, 2, 10, 100, 10_000][randomInt(random, 5)]!,
    rowCount,
    rows: random() < 0.5 ? null : createRandomBitmap(random, block.rowCount, random() ** 3),
  });
  return withRandomBound(random, query, block, rowCount);
}

/** A random query over some of the blocks, in any order. */
export function createRandomMultiBlockQuery(
  random: Random,
  blocks: readonly VectorBlock[],
  kind: RowKind,
): SearchQuery {
  const rest = [...blocks];
  const views = Array.from({ length: 1 + randomInt(random, blocks.length) }, (): BlockView => {
    const [block] = rest.splice(randomInt(random, rest.length), 1) as [VectorBlock];
    return {
      block,
      rowCount: random() < 0.7 ? block.rowCount : randomInt(random, block.rowCount + 1),
      rows: random() < 0.5 ? null : createRandomBitmap(random, block.rowCount, random() ** 3),
    };
  });
  const { block } = views[randomInt(random, views.length)]!;
  const metric = METRICS[randomInt(random, METRICS.length)]!;
  const query = createMultiBlockQuery(views, createVector(random, block, kind), {
    metric,
    k: [1, 2, 10, 100, 10_000][randomInt(random, 5)]!,
  });
  // A rank key need not be that of a row that is searched.
  return withRandomBound(random, query, block, block.rowCount);
}

/** Adds, to some queries, the rank key or the score of one of the first `rowCount` rows as a bound. */
function withRandomBound(
  random: Random,
  query: SearchQuery,
  block: VectorBlock,
  rowCount: number,
): SearchQuery {
  if (rowCount === 0 || random() < 0.6) return query;
  const { metric, vector } = query;
  const row = randomInt(random, rowCount);
  const score = trueScore(metric, vector, rowOf(block, row));
  if (random() < 0.5) return { ...query, after: { score, id: idOf(block, row) } };
  return { ...query, scoreMin: Math.fround(publicScore(metric, score)) };
}
