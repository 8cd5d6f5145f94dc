// Compares searches by multi-vectors with the definition of MaxSim, in blocks and ranges, with every kind of
// rows that makes bounds tight or useless.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBitmap, hasBit, setBit } from '../../../src/common/bitmap.js';
import type { RankKey } from '../../../src/common/rank-key.js';
import type { VectorBlock } from '../../../src/common/types.js';
import { utf8ColumnOf } from '../../../src/common/utf8-column.js';
import {
  canonicalScore,
  createCanonicalQuery,
  sumOfProducts,
  sumOfSquares,
} from '../../../src/engine/core/canonical.js';
import type { BlockView } from '../../../src/engine/core/engine.js';
import { searchByMaxSim } from '../../../src/engine/core/max-sim.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import {
  createRandom,
  createValues,
  type Random,
  type RowKind,
  randomInt,
} from '../../../src/tools/selftest/blocks.js';

const KINDS: readonly RowKind[] = [
  'random',
  'duplicates',
  'equal',
  'denormal',
  'huge',
  'zeros',
  'scattered',
  'clustered',
  'outlier',
  'scaled',
];

const seed = Number(process.env.SAGITTA_TEST_SEED ?? Date.now() % 2 ** 31);
console.log(`SAGITTA_TEST_SEED=${seed}`);

interface MultiView extends BlockView {
  readonly block: VectorBlock & { readonly starts: Int32Array };
}

function randomView(random: Random, kind: RowKind, key: string, dimension: number): MultiView {
  const rowCount = 1 + randomInt(random, 60);
  const starts = new Int32Array(rowCount + 1);
  for (let row = 0; row < rowCount; row++)
    starts[row + 1] = starts[row]! + 1 + randomInt(random, 5);
  const values = createValues(random, kind, starts[rowCount]!, dimension);
  const ids = utf8ColumnOf(
    Array.from({ length: rowCount }, (_, row) => `${row % 7}-${key}-${row}`),
  );
  const block = { key, rowCount, ids, dimension, starts, values, codes: null };
  const rows = createBitmap(rowCount);
  for (let row = 0; row < rowCount; row++) if (random() < 0.8) setBit(rows, row);
  const isFiltered = random() < 0.5;
  return { block, rowCount, rows: isFiltered ? rows : null };
}

interface Ranked {
  readonly block: number;
  readonly row: number;
  readonly score: number;
  readonly id: Buffer;
}

/** Ranks all rows of the views, best first, by the definition. */
function rank(
  views: readonly MultiView[],
  metric: 'cosine' | 'dot',
  query: Float32Array,
): Ranked[] {
  const ranked = views.flatMap(({ block, rowCount, rows }, index) => {
    const { dimension, starts, values } = block;
    return Array.from({ length: rowCount }, (_, row): Ranked | null => {
      if (rows !== null && !hasBit(rows, row)) return null;
      let score = 0;
      for (let at = 0; at < query.length; at += dimension) {
        const one = createCanonicalQuery(metric, query.subarray(at, at + dimension));
        let highest = Number.NEGATIVE_INFINITY;
        for (let i = starts[row]!; i < starts[row + 1]!; i++) {
          const product = sumOfProducts(one.values, values, i * dimension);
          const square = sumOfSquares(values, i * dimension, dimension);
          highest = Math.max(highest, canonicalScore(metric, product, one.square, square));
        }
        score += highest;
      }
      const { offsets, bytes } = block.ids;
      const id = Buffer.from(bytes.subarray(offsets[row]!, offsets[row + 1]!));
      return { block: index, row, score, id };
    }).filter((found) => found !== null);
  });
  return ranked.sort((a, b) => b.score - a.score || Buffer.compare(a.id, b.id));
}

async function search(
  views: readonly MultiView[],
  query: Float32Array,
  options: { metric: 'cosine' | 'dot'; k: number; after?: RankKey; scoreMin?: number },
) {
  const { metric, k, after = null, scoreMin = null } = options;
  const searched = { vector: query, metric, k, views, after, scoreMin };
  return searchByMaxSim(createInlinePool(), searched, {});
}

describe('a search by MaxSim', () => {
  for (const metric of ['dot', 'cosine'] as const) {
    it(`finds what the definition ranks first, by ${metric}`, async () => {
      const random = createRandom(seed);
      for (let round = 0; round < 120; round++) {
        const kind = KINDS[round % KINDS.length]!;
        const dimension = 1 + randomInt(random, 20);
        const count = 1 + randomInt(random, 3);
        const views = Array.from({ length: count }, (_, i) =>
          randomView(random, kind, `b${i}`, dimension),
        );
        const vectorCount = 1 + randomInt(random, 40);
        const queryKind = random() < 0.7 ? kind : 'random';
        const query = createValues(random, queryKind, vectorCount, dimension);
        const all = rank(views, metric, query);
        const k = 1 + randomInt(random, 12);
        const place = randomInt(random, all.length + 1) - 1;
        const after = place < 0 ? undefined : all[place];
        const scoreMin = random() < 0.3 ? Math.fround(all[all.length >> 1]?.score ?? 0) : undefined;
        const expected = all
          .slice(place + 1)
          .filter(({ score }) => scoreMin === undefined || Math.fround(score) >= scoreMin)
          .slice(0, k);
        const found = await search(views, query, {
          metric,
          k,
          ...(after && { after }),
          ...(scoreMin !== undefined && { scoreMin }),
        });
        assert.deepEqual(
          Array.from(found.rows, (row, i) => [found.viewIndexes[i], row, found.scores[i]]),
          expected.map(({ block, row, score }) => [block, row, score]),
          `round ${round}, ${kind}`,
        );
      }
    });
  }

  it('abandons rows that cannot be among the best', async () => {
    const random = createRandom(seed);
    const dimension = 16;
    const near = createValues(random, 'random', 32, dimension);
    const rowCount = 50;
    const starts = Int32Array.from({ length: rowCount + 1 }, (_, row) => row * 32);
    const values = createValues(random, 'random', rowCount * 32, dimension);
    // The first row has the vectors of the query.
    values.set(near);
    const ids = utf8ColumnOf(Array.from({ length: rowCount }, (_, row) => `v${row}`));
    const block = { key: 'b', rowCount, ids, dimension, starts, values, codes: null };
    const view = { block, rowCount, rows: null };
    const found = await search([view], near, { metric: 'cosine', k: 1 });
    assert.deepEqual([...found.rows], [0]);
    assert.equal(found.scannedCount, rowCount);
    assert.ok(found.rescoredCount < rowCount / 2, `${found.rescoredCount} of ${rowCount}`);
  });
});
